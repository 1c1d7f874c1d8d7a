const EventEmitter = require('eventemitter3');
const e = new EventEmitter();
e.on('a', function (...args) { console.log('a', args, this.tag); }, { tag: 'ctx' });
e.once('a', () => console.log('once'));
console.log(e.emit('a', 1, 2), e.emit('a'), e.emit('none'), e.listenerCount('a'), e.eventNames());
e.off('a'); console.log(e.listenerCount('a')); class Mine extends EventEmitter {} new Mine().on('x', console.log).emit('x', 'sub');
