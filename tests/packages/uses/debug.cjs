const debug = require('debug');
debug.enable('app:*,-app:no');
debug.log = (...args) => console.log(...args.map((a) => String(a).replace(/^\S*T\S*Z /, 'TIME ').replace(/\+\d+ms/, '+Nms')));
const log = debug('app:one'); log('hello %s %d %j %o', 'w', 42, { a: 1 }, [1, { b: 2 }]); debug('app:no')('hidden'); log.extend('sub')('nested %O', { x: [1] });
console.log(log.enabled, debug.enabled('app:no'), debug.enabled('app:x'), debug.disable(), debug.humanize(90000)); debug.formatters.h = (v) => Buffer.from(v).toString('hex'); debug.enable('*'); debug('q')('%h', 'hi');
