// What `check.js` needs of a compiler: it finds the text `wrong` in files, and does what other texts name.
const { readFileSync, existsSync, writeFileSync } = require('fs');
globalThis.loaded = (globalThis.loaded ?? 0) + 1;
exports.version = '5.0.0';
exports.ModuleKind = exports.ScriptTarget = exports.ModuleDetectionKind = {};
exports.ModuleResolutionKind = { Bundler: 100 };
exports.DiagnosticCategory = { Warning: 0, Error: 1 };
exports.sys = { fileExists: existsSync, readFile: (name) => readFileSync(name, 'utf8') };
exports.findConfigFile = () => (existsSync('/tsconfig.json') ? '/tsconfig.json' : undefined);
exports.readConfigFile = (name, readFile) => ({ config: JSON.parse(readFile(name)) });
exports.parseJsonConfigFileContent = ({ compilerOptions }) => ({ options: compilerOptions, errors: [] });
exports.createCompilerHost = () => exports.sys;
exports.getAutomaticTypeDirectiveNames = () => [];
exports.createProgram = (names, options, host) => ({ names, host });
exports.getPreEmitDiagnostics = ({ names, host }) => names.flatMap((fileName) => {
  const text = host.readFile(fileName);
  if (text.includes('compiler writes')) writeFileSync('written.txt', '');
  if (text.includes('compiler reads')) readFileSync('hidden.txt', 'utf8');
  if (text.includes('compiler hangs')) for (;;);
  const start = text.indexOf('wrong');
  const before = text.slice(0, start).split('\n');
  const place = { line: before.length - 1, character: before.at(-1).length };
  const file = { fileName, getLineAndCharacterOfPosition: () => place };
  const code = text.includes('compiler lies') ? 'nine' : 9;
  const count = text.includes('often') ? 250 : 1;
  return start < 0 ? [] : Array(count).fill({ file, start, messageText: 'found', category: 1, code });
});
exports.sortAndDeduplicateDiagnostics = (all) => all;
exports.flattenDiagnosticMessageText = (text) => text;
