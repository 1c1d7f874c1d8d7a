const pino = require('pino');
const { Writable } = require('stream');
const lines = new Writable({ write(chunk, enc, cb) { process.stdout.write(`> ${chunk}`); cb(); } });
const log = pino({ base: null, timestamp: false, level: 'trace', redact: ['user.password', 'list[*].k'], serializers: { err: (e) => ({ type: e.name, message: e.message }) } }, lines);
log.info('hello'); log.warn({ user: { name: 'a', password: 'p' }, list: [{ k: 1, z: 2 }] }, 'redacted %s %d', 'x', 5); log.child({ module: 'm' }).error({ err: new TypeError('bad') }, 'failed'); log.level = 'error'; log.info('no'); log.fatal({ a: 1n === 1n, u: undefined, d: new Date(0) });
console.log(log.isLevelEnabled('info'), pino.levels.values, pino.stdTimeFunctions.isoTime().startsWith(',"time":"'), log.bindings());
