const url = new URL('../p?q=1#h', 'http://user@host:81/a/b');
url.searchParams.append('two words', 'ü');
url.searchParams.sort();
console.log(url.href, url.origin, [...url.searchParams].length);
const params = new URLSearchParams(Object.entries({ b: { toString() { return 'x'; } }, a: 1 }));
params.forEach((value, name) => console.log(name, value));
for (const [name, value] of params) console.log(name + '=' + value);
try { new URL({ toString() { return 'bad'; } }); } catch (e) { console.log(e.code, e.input); }
const from = { date: new Date(0), list: [1, , 3], get computed() { return new Map([[{ k: 1 }, new Set([1])]]); } };
from.self = from;
const to = structuredClone(from);
console.log(to.self === to, to.date.getTime(), to.list.length, 1 in to.list, [...to.computed.keys()][0].k);
try { structuredClone({ f() {} }); } catch (e) { console.log(e.name, e.code); }
console.log(atob(btoa('binary \u00ff')) === 'binary \u00ff', crypto.randomUUID().length);
console.group({ toString: null });
console.count('n');
console.table([{ a: 1 }, { b: [1, 2, 3, 4] }]);
console.groupEnd();
console.count('n');
