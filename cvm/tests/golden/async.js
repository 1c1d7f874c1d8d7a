// Paused in an async function while others wait: for a promise, for all of several, in `for await`.
const order = [];
const wait = (name) => new Promise((resolve, reject) => { order.push(name); name === 'bad' ? reject(new TypeError(name)) : resolve(name); });
async function* letters() { for (const letter of 'ab') yield wait(letter); }
async function collect() { const list = []; for await (const letter of letters()) list.push(letter + CC(`letter ${letter}`)); return list; }
async function failing() { try { await wait('bad'); } catch (error) { return `${error.name}: ${CC('caught')}`; } finally { order.push('finally'); } }
let release;
const gate = new Promise((resolve) => { release = resolve; });
async function held() { const value = await gate; return CC(`held ${value}`); }
async function main() {
  const waiting = held();
  const both = await Promise.all([collect(), failing(), wait('good').then((text) => text.toUpperCase())]);
  release('gate');
  const any = await Promise.allSettled([waiting, Promise.reject(7), Promise.race([wait('x'), wait('y')])]);
  return { both, any, order };
}
