const winston = require('winston');
const { combine, printf, splat, json, label, errors, simple } = winston.format;
const { Writable } = require('stream');
const sink = new Writable({ write(chunk, enc, cb) { process.stdout.write(`SINK ${chunk}`); cb(); } });
const logger = winston.createLogger({ level: 'debug', format: combine(label({ label: 'app' }), errors({ stack: false }), splat(), printf((i) => `${i.label} ${i.level}: ${i.message} ${JSON.stringify(i.meta ?? {})}`)), transports: [new winston.transports.Stream({ stream: sink })], defaultMeta: { svc: 1 } });
logger.info('hello %s', 'you'); logger.debug('d', { meta: { a: 1 } }); logger.silly('no'); logger.error(new Error('bad')); logger.child({ meta: { k: 1 } }).warn('child'); console.log(logger.levels, logger.isDebugEnabled());
const j = winston.createLogger({ format: json(), transports: [new winston.transports.Console({ format: simple() }), new winston.transports.Stream({ stream: sink, level: 'warn' })] });
j.warn('both', { x: [1] }); j.on('finish', () => console.log('finished')); j.end(); const p = logger.startTimer; console.log(typeof p, winston.version);
