// Conditions that are constants leave the operands as they would be with any other condition.
const log = [];
function inFinally() { try { return true ? "yes" : "no"; } finally { log.push("finally"); } }
function nested(list) { for (const x of list) { try { return [x, true ? (false ? 1 : 2) : 3, !true ? 4 : 5]; } finally { log.push(true ? x : 0); } } }
log.push(inFinally(), nested([7]), [1, true ? 2 : 3, true && 4, false || 5, null ?? 6]);
log.push(`${true ? "a" : "b"}${false ? "c" : "d"}`, (true ? Math.max : null)(1, true ? 9 : 8));
console.log(JSON.stringify(log));
