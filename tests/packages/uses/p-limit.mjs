import pLimit from 'p-limit';
const limit = pLimit(2);
let running = 0; let most = 0;
const job = (n) => limit(async () => { running++; most = Math.max(most, running); await new Promise((f) => setTimeout(f, 5)); running--; return n * n; });
console.log(limit.activeCount, limit.pendingCount);
const jobs = [1, 2, 3, 4, 5].map(job);
console.log(limit.activeCount, limit.pendingCount);
console.log(await Promise.all(jobs), most);
console.log((await Promise.allSettled([limit(() => { throw new Error('bad'); }), limit(async (a, b) => a + b, 1, 2)])).map((r) => r.value ?? r.reason.message));
try { pLimit(0); } catch (e) { console.log(`${e}`); }
