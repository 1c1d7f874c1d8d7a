const parse = require('minimist');
console.log(parse(['-a', 'beep', '-b', 'boop', '-xyz', '--foo=3', '--no-bar', 'file', '--', 'rest', '-v']), parse(['--n', '5', '--s', '5', '-q', '--a.b.c=1'], { string: ['s'], boolean: ['q'], alias: { n: 'num' }, default: { d: 1 }, '--': true }));
