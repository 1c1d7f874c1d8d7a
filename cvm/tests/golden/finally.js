// Paused in `finally` blocks that run because of a return, a throw, a break and a generator's end.
const log = [];
function returns() { try { return 'value'; } finally { log.push(CC('after return')); } }
function throws() { try { try { throw new RangeError('first'); } finally { log.push(CC('after throw')); } } catch (error) { return error.message + error.stack.split('\n').length; } }
function breaks() { outer: for (const i of [1, 2, 3]) { for (;;) { try { if (i === 2) break outer; continue outer; } finally { log.push(i + CC(`loop ${i}`)); } } } return log.length; }
function* gives() { try { yield 1; yield 2; } finally { log.push(CC('generator closes')); } }
function main() {
  const results = [returns(), throws(), breaks()];
  for (const value of gives()) { results.push(value); break; }
  try { CC('last'); null.property; } catch (error) { results.push(error.name); } finally { results.push('end'); }
  return [results, log];
}
