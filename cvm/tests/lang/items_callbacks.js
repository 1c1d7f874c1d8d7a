// A top level without a promise: callbacks of items hold the program, items without one do not. Its unhandled rejection ends it at last.
sleep(1).then(() => { console.log('one'); return waitFor('two'); }).then((name) => console.log(name));
sleep(2);
CC.async('three').then((text) => { console.log(text); throw new RangeError('in a callback'); });
const counter = { value: 0, async add() { await sleep(3); this.value++; console.log('added', this.value); } };
counter.add(); counter.add();
