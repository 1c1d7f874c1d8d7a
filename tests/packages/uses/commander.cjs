const { Command, Option, CommanderError } = require('commander');
const program = new Command();
program.name('tool').description('does things').version('1.0.0').exitOverride().configureOutput({ writeErr: (t) => process.stdout.write(`ERR ${t}`) });
program.command('split').argument('<text>', 'what').option('-s, --separator <char>', 'at', ',').option('--first').addOption(new Option('-m, --mode <m>').choices(['a', 'b'])).action((text, o) => console.log(text.split(o.separator), o));
program.parse(['node', 'tool', 'split', '-s', '/', 'a/b/c', '--first', '-m', 'b']);
console.log(program.helpInformation(), program.commands[0].helpInformation());
for (const args of [['split'], ['nope'], ['split', 'x', '--mode', 'z'], ['--version']]) { try { program.parse(args, { from: 'user' }); } catch (e) { console.log(e.code, e.exitCode, e instanceof CommanderError); } }
