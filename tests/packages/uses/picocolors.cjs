const pc = require('picocolors');
const on = pc.createColors(true);
console.log(pc.isColorSupported, pc.red('plain'), JSON.stringify([on.red('x'), on.bold(on.blue(`a${on.red('b')}c`)), on.bgGreen('z'), on.reset('r'), on.redBright('q')]));
