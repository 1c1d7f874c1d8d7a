const mitt = require('mitt');
const e = mitt();
e.on('*', (type, v) => console.log('any', type, v)); const f = (v) => console.log('foo', v);
e.on('foo', f); e.emit('foo', { a: 1 }); e.off('foo', f); e.emit('foo', 2); console.log(e.all); e.all.clear(); e.emit('foo', 3);
