class RetryError extends Error { constructor(message, options) { super(message, options); this.name = 'RetryError'; } }
async function retry(fn, { tries = 3, delay = 1 } = {}) { let last; for (let i = 1; i <= tries; i++) { try { return await fn(i); } catch (e) { last = e; console.log(`attempt ${i} failed: ${e.message}`); await new Promise((r) => setTimeout(r, delay * 2 ** i)); } } throw new RetryError('gave up', { cause: last }); }
console.log(await retry(async (i) => { if (i < 3) throw new Error(`no ${i}`); return 'yes'; }));
try { await retry(() => Promise.reject(new Error('never')), { tries: 2 }); } catch (e) { console.log(`${e}`, e.cause.message, e instanceof RetryError); }
