// Runs TypeScript's compiler of the worktree's `node_modules` on files. Prints what it finds, or returns it (`type_checks/report.rs`).
// One expression: a session evaluates it for each check.
(check) => {
  'use strict';
  const { createRequire } = require('node:module');
  const { dirname, posix } = require('node:path');
  const { existsSync } = require('node:fs');

  const DIAGNOSTICS = 100;
  const MESSAGE_UNITS = 2_000;
  // Of all: the value of an execution is at most 256 KiB, and JSON has up to six bytes for a unit.
  const LISTED_UNITS = 36_000;
  const { print } = check;
  const names = check.files.map((file) => `/${file}`);
  const isJs = (name) => /\.[cm]?jsx?$/.test(name);
  const note = (text) => print === null || print.quiet || process.stderr.write(`${text}\n`);
  const failed = (why, hint) => ({ failure: { why, hint }, diagnostics: [] });

  // A file of JavaScript that runs is checked if a tsconfig.json says so (`checkJs`); one that is named to be checked always is.
  const isOnlyJs = print === null && names.every(isJs);
  const hasConfig = (folder) =>
    existsSync(posix.join(folder, 'tsconfig.json')) || (folder !== '/' && hasConfig(dirname(folder)));

  // As an `import` of the first file finds it.
  const load = () => {
    const near = createRequire(names[0]);
    try {
      return { ts: near('typescript'), path: near.resolve('typescript') };
    } catch (error) {
      if (error.code === 'MODULE_NOT_FOUND' && error.message.includes("'typescript'")) {
        if (isOnlyJs) return undefined;
        const folder = print === null ? 'the worktree' : print.folder;
        return failed(`${folder} has no package typescript in node_modules`, '`npm install --save-dev typescript@5` installs it there');
      }
      if (error instanceof SyntaxError || error.code === 'MODULE_NOT_ALLOWED') {
        return failed(
          `the package typescript cannot be loaded: ${error.message}`, '`npm install --save-dev typescript@5` installs a version that works',
        );
      }
      throw error;
    }
  };

  // What is so in sessions and programs, whatever a tsconfig.json says.
  const fixed = (ts) => ({
    noEmit: true, allowJs: true, resolveJsonModule: true, allowImportingTsExtensions: true, composite: false,
    incremental: false, declaration: false, emitDeclarationOnly: false, noEmitOnError: false, declarationMap: false,
    tsBuildInfoFile: undefined, rootDir: undefined, outFile: undefined, outDir: undefined, sourceMap: false, inlineSourceMap: false,
    inlineSources: false, module: ts.ModuleKind.Preserve ?? ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler,
    moduleDetection: ts.ModuleDetectionKind.Force, target: ts.ScriptTarget.ESNext, verbatimModuleSyntax: false, isolatedModules: false,
    isolatedDeclarations: false,
  });
  const isDom = (name) => /(^|\.)(dom|webworker)(\.|$)/i.test(posix.basename(name));

  const optionsFor = (ts, problems) => {
    // In JavaScript, types that nobody wrote are no errors.
    let options = { strict: !names.every(isJs), skipLibCheck: true, esModuleInterop: true };
    const configPath = ts.findConfigFile(dirname(names[0]), ts.sys.fileExists);
    if (configPath !== undefined) {
      const { config, error } = ts.readConfigFile(configPath, ts.sys.readFile);
      if (error) problems.push(error);
      const given = { ...config, files: names, include: [], references: undefined };
      const parsed = ts.parseJsonConfigFileContent(given, ts.sys, dirname(configPath), undefined, configPath);
      for (const problem of parsed.errors) problems.push(problem);
      options = { skipLibCheck: true, esModuleInterop: true, ...parsed.options };
    }
    options = { ...options, ...fixed(ts) };
    if (print !== null && names.some(isJs)) options.checkJs = true;
    if (print?.program) {
      options.types = [];
      options.lib = options.lib?.filter((name) => !isDom(name));
    }
    if (!options.lib?.length) options.lib = ['lib.esnext.d.ts'];
    return options;
  };

  // Files that a later check has again are parsed once: those of packages, and our own.
  const parsedFiles = (options) => {
    const place = Symbol.for('vm-system.parsed');
    const key = JSON.stringify(options);
    if (globalThis[place]?.key !== key) {
      Object.defineProperty(globalThis, place, { value: { key, files: new Map() }, configurable: true });
    }
    return globalThis[place].files;
  };

  const hostFor = (ts, options, path) => {
    const host = ts.createCompilerHost(options);
    const declared = new Map(Object.entries(check.declarations).map(([name, text]) => [`/@vm-system/${name}`, text]));
    const parsed = parsedFiles(options);
    const { readFile, fileExists, getSourceFile } = host;
    const given = (name) => declared.get(name) ?? (name === names[0] ? check.text ?? undefined : undefined);
    host.readFile = (name) => given(name) ?? readFile.call(host, name);
    host.fileExists = (name) => declared.has(name) || fileExists.call(host, name);
    host.getSourceFile = (name, ...rest) => {
      if (!declared.has(name) && !name.includes('/node_modules/')) return getSourceFile.call(host, name, ...rest);
      const text = host.readFile(name);
      const known = parsed.get(name);
      if (known !== undefined && known.text === text) return known;
      const file = declared.has(name) ? ts.createSourceFile(name, text, rest[0]) : getSourceFile.call(host, name, ...rest);
      parsed.set(name, file);
      return file;
    };
    host.getDefaultLibLocation = () => `/${dirname(path)}`.replace(/^\/\//, '/');
    host.getDefaultLibFileName = (given) => posix.join(host.getDefaultLibLocation(), ts.getDefaultLibFileName(given));
    return host;
  };

  const find = () => {
    if (isOnlyJs && !hasConfig(dirname(names[0]))) return { failure: null, diagnostics: [] };
    note('loading TypeScript…');
    const loaded = load();
    if (loaded === undefined) return { failure: null, diagnostics: [] };
    if (loaded.failure) return loaded;
    const { ts, path } = loaded;
    if (typeof ts.createProgram !== 'function' || ts.ModuleResolutionKind?.Bundler === undefined) {
      const why = typeof ts.createProgram === 'function' ? 'is too old' : 'has no compiler in JavaScript (version 5 has one)';
      return failed(`the package typescript ${ts.version ?? ''} ${why}`, '`npm install --save-dev typescript@5` installs a version that works');
    }
    note(`checking ${names.length === 1 ? '1 file' : `${names.length} files`} with TypeScript ${ts.version}…`);
    const problems = [];
    const options = optionsFor(ts, problems);
    if (isOnlyJs && !options.checkJs) return { failure: null, diagnostics: [] };
    const host = hostFor(ts, options, path);
    const hasNode = ts.getAutomaticTypeDirectiveNames(options, host).includes('node');
    const hasDom = options.lib.some(isDom);
    const wanted = print?.program
      ? ['cc.d.ts', 'console.d.ts', 'program.d.ts', 'url.d.ts']
      : ['cc.d.ts', 'session.d.ts', ...(hasNode || hasDom ? [] : ['console.d.ts', 'web.d.ts', 'url.d.ts']), ...(hasNode ? [] : ['node.d.ts'])];
    const program = ts.createProgram([...names, ...wanted.map((name) => `/@vm-system/${name}`)], options, host);
    // No spread: there may be more than a call has arguments.
    for (const problem of ts.getPreEmitDiagnostics(program)) problems.push(problem);

    const { Error: ERROR, Warning: WARNING } = ts.DiagnosticCategory;
    const shown = ts.sortAndDeduplicateDiagnostics(problems).filter(({ category }) => category === ERROR || category === WARNING);
    const diagnostics = shown.map(({ file, start, messageText, category, code }) => {
      let place = null;
      if (file !== undefined) {
        const { line, character } = file.getLineAndCharacterOfPosition(start ?? 0);
        place = { file: file.fileName.replace(/^\//, ''), line: line + 1, column: character + 1 };
      }
      return { place, is_error: category === ERROR, code, message: ts.flattenDiagnosticMessageText(messageText, '\n') };
    });
    return { failure: null, diagnostics };
  };

  const { failure, diagnostics } = find();
  const errors = diagnostics.filter(({ is_error }) => is_error).length;
  const report = () => {
    let units = 0;
    const cut = diagnostics.slice(0, DIAGNOSTICS).map((found) => ({ ...found, message: found.message.slice(0, MESSAGE_UNITS).toWellFormed() }));
    const listed = cut.filter(({ message, place }) => (units += message.length + (place?.file.length ?? 0) + 20) <= LISTED_UNITS);
    return { failure, diagnostics: listed, errors, left_out: diagnostics.length - listed.length };
  };
  if (print === null) return report();
  if (failure !== null) {
    process.stderr.write(`error: ${failure.why}\nhint: ${failure.hint}\n`);
    process.exit(1);
  }
  if (print.as_value) {
    const { diagnostics: listed, left_out } = report();
    return {
      errors,
      diagnostics: listed.map(({ place, is_error, code, message }) => ({
        file: place === null ? null : `${print.shown}${place.file}`, line: place?.line ?? null, column: place?.column ?? null,
        severity: is_error ? 'error' : 'warning', code: `TS${code}`, message,
      })),
      left_out,
    };
  }
  for (const { place, is_error, code, message } of diagnostics) {
    const where = place === null ? '' : `${print.shown}${place.file}:${place.line}:${place.column}: `;
    process.stdout.write(`${where}${is_error ? 'error' : 'warning'} TS${code}: ${message}\n`);
  }
  note(errors === 0 ? 'no errors' : errors === 1 ? '1 error' : `${errors} errors`);
  process.exitCode = errors === 0 ? 0 : 1;
}
