// Waits for questions, timers and events in several functions, with an unhandled rejection that was reported, and after earlier answers.
const held = [CC.async('first'), sleep(10), waitFor('event', { timeout_ms: 5, default: { none: true } })];
const gone = Promise.reject(new RangeError('gone'));
const order = [];
async function review(n) { try { return [n, await CC.async(`review ${n}`, { retries: 1 })]; } finally { order.push(n); await sleep(n); } }
async function* each(list) { for (const one of list) yield await one; }
class Desk { #open = [1, 2, 3].map(review); async first() { return Promise.race(this.#open); } get all() { return Promise.allSettled(this.#open); } }
const desk = new Desk();
async function main() {
  const first = desk.first().then((value) => { order.push('first'); return value; });
  const list = [];
  for await (const one of each(held)) list.push(one ?? 'slept', CC(`after ${list.length}`));
  try { await gone; } catch (error) { list.push(`${error}`); }
  return { list, first: await first, all: await desk.all, order, lost: [CC.async('open'), sleep(9)].length };
}
