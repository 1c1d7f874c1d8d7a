import yargs from 'yargs';
const make = (args) => yargs(args).scriptName('tool').exitProcess(false).locale('en').wrap(80).version('1.2.3');
const parsed = await make(['build', 'src', '--out', 'dist', '-v', '-v', '--level=3']).command('build <dir> [more..]', 'build it', (y) => y.option('out', { type: 'string', demandOption: true, describe: 'where to' }).option('level', { type: 'number', choices: [1, 2, 3] }).count('v'), (a) => console.log('handler', a.dir, a.out)).parse();
console.log(parsed);
console.log(await make([]).option('size', { alias: 's', describe: 'the size', choices: ['s', 'm'], default: 'm' }).example('$0 -s m', 'medium').getHelp());
try { await make(['--size', 'x']).option('size', { choices: ['s', 'm'] }).fail((m) => console.log('failed:', m)).parse(); } catch (e) { console.log('thrown', e?.message); }
