// Instructions that work on variables convert them: comparisons of objects, and exceptions of the first instruction of a block.
function less(a, b) {
  return a < b;
}
function lessThanFive(a) {
  return a < 5;
}
const order = [];
const of = (name, value) => ({ valueOf() { order.push(name); return value; } });
console.log(less(new Date(1), new Date(2)), less(new Date(2), new Date(1)), less(of('x', 1), of('y', 2)), less(3, of('z', '10')));
console.log(order.join(), less({}, []), less([2], [10]), less(of('p', 1n), 2), lessThanFive(of('q', 4)), lessThanFive([7]));
try {
  less(Symbol('s'), 1);
} catch (e) {
  console.log(e.name);
}
function attempts() {
  let log = [];
  let one = 1;
  let bad = { valueOf() { throw new Error('no'); } };
  try { bad++; } catch (e) { log.push('++ ' + e.message); }
  try { bad--; } catch (e) { log.push('-- ' + e.message); }
  try { one += bad; } catch (e) { log.push('+= ' + e.message); }
  try { log.push(one < bad); } catch (e) { log.push('< ' + e.message); }
  try { bad < 5; } catch (e) { log.push('<5 ' + e.message); }
  try { bad++; } catch { log.push('again'); } finally { log.push('finally'); }
  for (const way of [1, 2]) {
    try { bad++; } catch { continue; } finally { log.push(way); }
  }
  let waits = { valueOf() { if (CC('value') === 'x') return 1; throw new Error('later'); } };
  try { waits++; } catch (e) { log.push(e.message); }
  return log.join('; ');
}
console.log(attempts());
