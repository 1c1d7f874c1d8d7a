const EventEmitter = require('events');
const { once, on } = EventEmitter;
class Mine extends EventEmitter {}
const e = new Mine();
e.on('newListener', (name) => console.log('new', name));
e.on('a', function (...args) { console.log('a', args, this === e); });
e.once('a', () => console.log('once'));
e.prependListener('a', () => console.log('first'));
console.log(e.emit('a', 1, 2), e.emit('a'), e.emit('b'), e.listenerCount('a'), e.eventNames());
for (const value of [new Error('x'), 'text', { a: 1 }, undefined]) {
  try { new EventEmitter().emit('error', value); } catch (error) { console.log(error.code, error.message, error.context); }
}
for (const call of [() => e.on('x', 5), () => e.setMaxListeners(-1), () => e.setMaxListeners('a')]) {
  try { call(); } catch (error) { console.log(error.name, error.code, error.message); }
}
function Old() { EventEmitter.call(this); }
require('util').inherits(Old, EventEmitter);
new Old().on('z', console.log).emit('z', 'old');
(async () => {
  setTimeout(() => e.emit('later', 1, 2), 1);
  console.log(await once(e, 'later'));
  setTimeout(() => e.emit('error', new Error('rejected')), 1);
  await once(e, 'later').catch((error) => console.log(error.message));
  setTimeout(() => { for (let i = 0; i < 3; i++) e.emit('many', i); }, 1);
  for await (const [i] of on(e, 'many')) { console.log(i); if (i === 2) break; }
  const abort = new AbortController();
  const waiting = once(e, 'never', { signal: abort.signal });
  abort.abort();
  await waiting.catch((error) => console.log(error.name, error.code));
})();
