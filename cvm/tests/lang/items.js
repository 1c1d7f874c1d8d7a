// Questions, timers and events at once: the order in which they are settled decides.
const log = [];
const note = (name) => (value) => { log.push(name); return value; };
async function review(name) {
  try { return await CC.async(name, { schema: { type: 'string' }, timeout_ms: 50 }); }
  catch (error) { return `${error.name} ${error.message} ${error instanceof CCError}`; }
  finally { log.push(`end of ${name}`); await sleep(0.2); }
}
class Account {
  #balance = 0;
  async pay(...parts) { for await (const part of parts) this.#balance += part; return this.#balance; }
}
async function* events(...names) { for (const name of names) yield await waitFor(name, { timeout_ms: 9, default: { none: name } }); }
async function main() {
  const both = Promise.all([review('first'), review('fail'), review('late'), review('wrong')]);
  const race = Promise.race([sleep(10).then(note('timer')).then(() => 'timer'), waitFor('paid').then(note('event')), CC.async('who?').then(note('answer'))]);
  const amounts = [1, CC.async('json'), 3].map(async (part) => (typeof part === 'number' ? part : (await part).of[1]));
  const account = new Account(), paid = account.pay(...amounts);
  console.log('pauses:', CC('in the middle'), log.length);
  const list = [];
  for await (const event of events('a', 'late', 'b')) list.push(event, log.length);
  const settled = await Promise.allSettled([both, race, paid, CC.async('fail').catch((error) => error.message)]);
  console.log(settled.map((one) => one.value), `${await CC.async('text')} ${await sleep(1)}`);
  sleep(1000);
  CC.async('left').then(note('never'));
  return { list, log, any: await Promise.any([Promise.reject(1), waitFor('wrong'), sleep(3)]) };
}
