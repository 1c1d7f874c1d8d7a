// `return` and `throw` requests while an async generator is in `yield*`: their values are awaited before the inner iterator gets them.
const shown = async (what) => {
  try { const { value, done } = await what; return `${String(value)} ${done}`; } catch (error) { return `rejected: ${error}`; }
};
const iterate = (methods) => ({ [Symbol.asyncIterator]: () => ({ next: () => ({ value: 1, done: false }), ...methods }) });
const log = [];
const bodies = {
  'over a list': async function* () { yield* [1, 2]; },
  'without methods': async function* () { yield* iterate({}); },
  'with return': async function* () { yield* iterate({ return: (value) => (log.push(`return ${value}`), { value: `R${value}`, done: true }) }); },
  'with throw': async function* () { yield* iterate({ throw: (error) => (log.push(`throw ${error}`), { value: `T${error}`, done: false }) }); },
  'over a generator': async function* () { yield* (async function* () { try { yield 1; } catch (error) { yield `caught ${error}`; } finally { log.push('finally'); } })(); },
};
async function main() {
  for (const [name, body] of Object.entries(bodies)) {
    const requests = {
      'return a promise': (g) => g.return(Promise.resolve('p')),
      'return a thenable': (g) => g.return({ then: (resolve) => resolve('t') }),
      'return a rejection': (g) => g.return(Promise.reject('r')),
      'return a value': (g) => g.return('v'),
    };
    for (const [request, act] of Object.entries(requests)) {
      // Without a method `throw` the result is an error with a text of the engine.
      if (request === 'return a rejection' && ['over a list', 'without methods', 'with return'].includes(name)) continue;
      const generator = body();
      await generator.next();
      console.log(name + ', ' + request + ': ' + (await shown(act(generator))) + ', then ' + (await shown(generator.next())) + log.splice(0).map((line) => ` [${line}]`).join(''));
    }
  }
  // Queued requests keep their order.
  const generator = bodies['over a list']();
  const all = [generator.next(), generator.return(Promise.resolve(1)), generator.next()].map(shown);
  console.log((await Promise.all(all)).join(' | '));
}
