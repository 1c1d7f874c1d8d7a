// A rejection that nothing handles ends the program when nothing is left to run; a pause is no end, and handling late is handling.
async function boom(text) { await null; throw new Error(text); }
const late = Promise.reject(new TypeError("handled after a pause"));
Promise.reject(1).catch(() => console.log("caught"));
(async () => { try { await Promise.reject(2); } catch (e) { console.log("awaited", e); } })();
Promise.all([Promise.reject(3), Promise.reject(4)]).catch((e) => console.log("all", e));
boom("nobody handles this one");
boom("nor this one, but it is later");
CC("a pause before the jobs ran");
late.catch((e) => console.log(e.message));
function main() { return "not the result"; }
