import chalk, { Chalk, supportsColor } from 'chalk';
console.log(chalk.red('plain'), supportsColor, chalk.level);
const c = new Chalk({ level: 3 });
console.log(JSON.stringify([c.red.bold.underline('x'), c.hex('#ff8800')('y'), c.bgRgb(1, 2, 3).white('z'), c.blue(`a ${c.green('b')} c`), c.ansi256(99)('q'), c.dim('l1\nl2'), c.visible('v')]));
