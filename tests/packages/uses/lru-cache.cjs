const { LRUCache } = require('lru-cache');
const gone = [];
const cache = new LRUCache({ max: 3, dispose: (v, k, why) => gone.push([k, v, why]) });
for (const k of 'abcd') cache.set(k, k.toUpperCase());
cache.get('b'); cache.set('e', 'E'); console.log([...cache.keys()], [...cache.entries()], gone, cache.has('a'), cache.peek('d'), cache.size);
const timed = new LRUCache({ max: 10, ttl: 5, sizeCalculation: (v) => v.length, maxSize: 10 });
timed.set('x', 'four'); timed.set('y', 'sixsix'); console.log(timed.calculatedSize, timed.get('x'));
setTimeout(async () => { console.log(timed.get('x'), timed.size); const f = new LRUCache({ max: 5, fetchMethod: async (k) => `fetched ${k}` }); console.log(await f.fetch('k'), f.get('k')); }, 20);
