// Runs TypeScript's compiler of the worktree's `node_modules` on the files in CHECK and prints what it finds.
'use strict';
const { createRequire } = require('node:module');
const { dirname, posix } = require('node:path');

const fail = (message, hint) => {
  process.stderr.write(`error: ${message}\nhint: ${hint}\n`);
  process.exit(1);
};

// As an `import` of the first file finds it.
const load = () => {
  const near = createRequire(`/${CHECK.files[0]}`);
  try {
    return [near('typescript'), near.resolve('typescript')];
  } catch (error) {
    if (error.code === 'MODULE_NOT_FOUND' && error.message.includes("'typescript'")) {
      fail(`${CHECK.folder} has no package typescript in node_modules`, '`npm install --save-dev typescript@5` installs it there');
    }
    if (error instanceof SyntaxError || error.code === 'MODULE_NOT_ALLOWED') {
      fail(`the package typescript cannot be loaded: ${error.message}`, '`npm install --save-dev typescript@5` installs a version that works');
    }
    throw error;
  }
};

const note = (text) => CHECK.quiet || process.stderr.write(`${text}\n`);
note('loading TypeScript…');
const [ts, path] = load();
if (typeof ts.createProgram !== 'function' || ts.ModuleResolutionKind?.Bundler === undefined) {
  const why = typeof ts.createProgram === 'function' ? 'is too old' : 'has no compiler in JavaScript (version 5 has one)';
  fail(`the package typescript ${ts.version ?? ''} ${why}`, '`npm install --save-dev typescript@5` installs a version that works');
}
note(`checking ${CHECK.files.length === 1 ? '1 file' : `${CHECK.files.length} files`} with TypeScript ${ts.version}…`);

const names = CHECK.files.map((file) => `/${file}`);
const problems = [];
const isJs = (name) => /\.[cm]?jsx?$/.test(name);
// In JavaScript, types that nobody wrote are no errors.
const defaults = { strict: !names.every(isJs), skipLibCheck: true, esModuleInterop: true };
// What is so in sessions and programs, whatever a tsconfig.json says.
const fixed = {
  noEmit: true, allowJs: true, resolveJsonModule: true, allowImportingTsExtensions: true, composite: false,
  incremental: false, declaration: false, emitDeclarationOnly: false, noEmitOnError: false, declarationMap: false,
  tsBuildInfoFile: undefined, rootDir: undefined, outFile: undefined, outDir: undefined, sourceMap: false, inlineSourceMap: false,
  inlineSources: false, module: ts.ModuleKind.Preserve ?? ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler,
  moduleDetection: ts.ModuleDetectionKind.Force, target: ts.ScriptTarget.ESNext, verbatimModuleSyntax: false, isolatedModules: false,
  isolatedDeclarations: false,
};
const configPath = ts.findConfigFile(dirname(names[0]), ts.sys.fileExists);
let options = defaults;
if (configPath !== undefined) {
  const { config, error } = ts.readConfigFile(configPath, ts.sys.readFile);
  if (error) problems.push(error);
  const given = { ...config, files: names, include: [], references: undefined };
  const parsed = ts.parseJsonConfigFileContent(given, ts.sys, dirname(configPath), undefined, configPath);
  problems.push(...parsed.errors);
  options = { skipLibCheck: true, esModuleInterop: true, ...parsed.options };
}
options = { ...options, ...fixed };
if (names.some(isJs)) options.checkJs = true;
const isDom = (name) => /(^|\.)(dom|webworker)(\.|$)/i.test(posix.basename(name));
if (CHECK.program) {
  options.types = [];
  options.lib = options.lib?.filter((name) => !isDom(name));
}
if (!options.lib?.length) options.lib = ['lib.esnext.d.ts'];

const host = ts.createCompilerHost(options);
const declared = new Map(Object.entries(CHECK.declarations).map(([name, text]) => [`/@vm-system/${name}`, text]));
const { readFile, fileExists, getSourceFile } = host;
host.readFile = (name) => declared.get(name) ?? readFile.call(host, name);
host.fileExists = (name) => declared.has(name) || fileExists.call(host, name);
host.getSourceFile = (name, ...rest) =>
  declared.has(name) ? ts.createSourceFile(name, declared.get(name), rest[0]) : getSourceFile.call(host, name, ...rest);
host.getDefaultLibLocation = () => `/${dirname(path)}`.replace(/^\/\//, '/');
host.getDefaultLibFileName = (given) => posix.join(host.getDefaultLibLocation(), ts.getDefaultLibFileName(given));

const hasNode = ts.getAutomaticTypeDirectiveNames(options, host).includes('node');
const hasDom = options.lib.some(isDom);
const wanted = CHECK.program
  ? ['cc.d.ts', 'console.d.ts', 'program.d.ts', 'url.d.ts']
  : ['cc.d.ts', 'session.d.ts', ...(hasNode || hasDom ? [] : ['console.d.ts', 'web.d.ts', 'url.d.ts']), ...(hasNode ? [] : ['node.d.ts'])];
const program = ts.createProgram([...names, ...wanted.map((name) => `/@vm-system/${name}`)], options, host);
problems.push(...ts.getPreEmitDiagnostics(program));

let errors = 0;
for (const { file, start, messageText, category, code } of ts.sortAndDeduplicateDiagnostics(problems)) {
  if (category !== ts.DiagnosticCategory.Error && category !== ts.DiagnosticCategory.Warning) continue;
  const kind = category === ts.DiagnosticCategory.Error ? 'error' : 'warning';
  if (kind === 'error') errors += 1;
  const message = ts.flattenDiagnosticMessageText(messageText, '\n');
  let where = '';
  if (file !== undefined) {
    const { line, character } = file.getLineAndCharacterOfPosition(start ?? 0);
    where = `${CHECK.shown}${file.fileName.replace(/^\//, '')}:${line + 1}:${character + 1}: `;
  }
  process.stdout.write(`${where}${kind} TS${code}: ${message}\n`);
}
note(errors === 0 ? 'no errors' : errors === 1 ? '1 error' : `${errors} errors`);
process.exitCode = errors === 0 ? 0 : 1;
