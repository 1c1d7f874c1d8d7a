const R = require('ramda');
const total = R.pipe(R.filter(R.propEq(true, 'paid')), R.map(R.prop('sum')), R.sum);
console.log(total([{ paid: true, sum: 3 }, { paid: false, sum: 9 }, { paid: true, sum: 4 }]), R.curry((a, b, c) => a + b + c)(1)(2, 3));
console.log(R.over(R.lensPath(['a', 0, 'b']), R.inc, { a: [{ b: 1 }] }), R.groupBy(R.toLower, ['A', 'b', 'a']), R.toString({ a: [1, new Date(0), /x/g] }));
console.log(R.evolve({ n: R.negate, s: R.toUpper }, { n: 5, s: 'x', k: 1 }), R.transpose([[1, 2], [3, 4]]), R.aperture(2, [1, 2, 3]));
console.log(R.sortWith([R.ascend(R.prop('a')), R.descend(R.prop('b'))])([{ a: 2, b: 1 }, { a: 1, b: 1 }, { a: 1, b: 2 }]), R.equals(new Set([[1]]), new Set([[1]])));
console.log(R.into([], R.compose(R.map(R.add(1)), R.take(2)), [1, 2, 3]), R.type(null), R.zipWith((a, b) => a * b, [1, 2], [3, 4]), R.mergeDeepRight({ a: { b: 1 } }, { a: { c: 2 } }));
