// Arrays whose elements move all at once, and arrays where that would show.
const show = (...list) => console.log(list.map((x) => (Array.isArray(x) ? `${JSON.stringify(x)}#${x.length}:${Object.keys(x)}` : String(x))).join(' | '));
const attempt = (work) => { try { return work(); } catch (e) { return e.name; } };

const queue = [];
for (let i = 0; i < 60; i++) queue.push(i);
let sum = 0;
while (queue.length > 1) { sum += queue.shift(); queue.unshift(queue.pop()); }
show(sum, queue);
show([].shift(), [1].shift(), [, 1].shift(), [1, 2, 3].splice(1), [1, 2, 3].splice(-2, 1, 'x', 'y'), [1, 2, 3].splice());

const holes = [1, , 3, , 5];
show(holes.slice(1), holes.slice(-2, -1), holes.concat([, 6, ,], 7), holes.indexOf(undefined), holes.includes(undefined));
show(holes.shift(), holes, holes.unshift(0, -1), holes, holes.splice(1, 2, 'a'), holes);

const equal = [0, -0, NaN, 'text', 'te' + 'xt', 10n, null, undefined, Symbol.iterator, 1.5];
show(...[-0, NaN, `${'t'}ext`, 5n * 2n, null, undefined, Symbol.iterator, 3 / 2, '1.5', true].map((x) => `${equal.indexOf(x)} ${equal.includes(x)}`));
show(equal.indexOf(0, 1), equal.indexOf('text', -7), equal.includes(NaN, 3), equal.indexOf(1.5, 100), equal.includes(1.5, -Infinity));

const getter = [1, 2, 3];
Object.defineProperty(getter, 1, { get() { console.log('read'); return 'got'; }, set(v) { console.log('set ' + v); }, configurable: true, enumerable: true });
show(getter.indexOf('got'), getter.slice(), getter.concat(9));
show(getter.shift(), attempt(() => getter.length));

show(attempt(() => Object.freeze([1, 2]).shift()), attempt(() => Object.freeze([1, 2]).unshift(0)), attempt(() => Object.freeze([1, 2]).splice(0, 1)), Object.freeze([1, 2]).slice(1));
const sealed = Object.seal([1, 2, 3]);
show(attempt(() => sealed.shift()), sealed, attempt(() => sealed.unshift(1)), sealed);
const closed = Object.preventExtensions([1, 2, 3]);
show(attempt(() => closed.unshift(0)), closed, closed.splice(1, 1), closed, attempt(() => closed.splice(0, 0, 'x')), closed);
const fixed = Object.defineProperty([1, 2, 3], 'length', { writable: false });
show(attempt(() => fixed.shift()), fixed, attempt(() => fixed.splice(0, 0, 5)), fixed);
const constant = Object.defineProperty([1, 2, 3], 1, { writable: false });
show(attempt(() => constant.shift()), constant, constant.indexOf(2));

class List extends Array { static made = 0; constructor(...args) { super(...args); List.made++; } }
const list = List.from([1, 2, 3, 4]);
show(list.slice(1) instanceof List, list.splice(0, 2) instanceof List, list, list.concat([5]) instanceof List, list.shift(), List.made);
const chooses = [1, 2, 3];
chooses.constructor = { [Symbol.species]: function (n) { return { made: n }; } };
show(JSON.stringify(chooses.slice(1)), JSON.stringify(chooses.splice(0, 1)), chooses, JSON.stringify(chooses.concat([8])));
const same = [1, 2];
same.constructor = { [Symbol.species]: function () { return same; } };
show(same.concat([3]), same, attempt(() => same.slice(1)), same);
const spread = { length: 2, 0: 'a', 1: 'b', [Symbol.isConcatSpreadable]: true };
const kept = [1]; kept[Symbol.isConcatSpreadable] = false;
show([0].concat(spread, [[1]], 2), [0].concat(kept).length);

const seen = [];
const proxy = new Proxy([1, 2, 3], { get(t, k, r) { seen.push(`get ${String(k)}`); return Reflect.get(t, k, r); }, has(t, k) { seen.push(`has ${String(k)}`); return k in t; }, set(t, k, v, r) { seen.push(`set ${String(k)}`); return Reflect.set(t, k, v, r); }, deleteProperty(t, k) { seen.push(`delete ${String(k)}`); return delete t[k]; }, defineProperty(t, k, d) { return Reflect.defineProperty(t, k, d); } });
show(Array.prototype.shift.call(proxy), seen.join());
const like = { length: 3, 0: 'x', 2: 'z' };
show(Array.prototype.shift.call(like), JSON.stringify(like), Array.prototype.unshift.call(like, 'u'), JSON.stringify(like), JSON.stringify(Array.prototype.splice.call(like, 1, 1)), JSON.stringify(like), Array.prototype.indexOf.call(like, 'z'));

Array.prototype[1] = 'inherited';
const behind = [0, , 2];
show(behind.slice().length, behind.indexOf('inherited'), behind.shift(), Object.hasOwn(behind, 0), behind[0], behind.concat([, ,]).length);
delete Array.prototype[1];
const wide = [];
wide[5] = 'far'; wide.length = 8;
show(wide.shift(), wide, wide.splice(2, 3), wide, wide.concat([1]), wide.slice(3));
const extra = [1, 2]; extra.name = 'kept'; extra['-1'] = 'too';
show(extra.shift(), extra, extra.name, extra['-1']);
