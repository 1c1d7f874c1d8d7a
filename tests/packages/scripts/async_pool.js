const sleep = (ms, v) => new Promise((r) => setTimeout(r, ms, v));
async function pool(tasks, size) { const results = []; let next = 0; await Promise.all(Array.from({ length: size }, async () => { while (next < tasks.length) { const i = next++; try { results[i] = { ok: await tasks[i]() }; } catch (e) { results[i] = { error: e.message }; } } })); return results; }
(async () => {
  console.log(await pool([() => sleep(6, 'a'), () => sleep(1, 'b'), async () => { throw new Error('c failed'); }, () => sleep(2, 'd')], 2));
  console.log((await Promise.allSettled([Promise.resolve(1), Promise.reject(new TypeError('no'))])).map((r) => r.value ?? `${r.status}: ${r.reason.message}`), await Promise.race([sleep(50, 'slow'), sleep(1, 'fast')]));
  try { await Promise.any([Promise.reject(new Error('1')), Promise.reject(new Error('2'))]); } catch (e) { console.log(e.constructor.name, e.message, e.errors.map(String)); }
})();
