// A reason that is no error, thrown away by a forgotten promise.
const forgotten = Promise.reject({ code: 5 });
async function main() { await CC("q"); return 1; }
