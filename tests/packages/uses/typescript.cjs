const ts = require('typescript');
console.log(ts.version.split('.')[0] > 4);
const options = { target: ts.ScriptTarget?.ES2020, module: ts.ModuleKind?.CommonJS };
console.log(ts.transpileModule('enum E { A = 1 } class X<T> { constructor(private a: T) {} } export const y: E = E.A as E; const z = x!;', { compilerOptions: options }).outputText);
const file = ts.createSourceFile('a.ts', 'function f(a: number): string { return a }', ts.ScriptTarget.ES2020, true); const kinds = []; const walk = (n) => { kinds.push(ts.SyntaxKind[n.kind]); ts.forEachChild(n, walk); }; walk(file); console.log(kinds);
const host = { fileExists: (f) => f === 'a.ts', readFile: () => '', getSourceFile: (n) => (n === 'a.ts' ? file : undefined), getDefaultLibFileName: () => 'lib.d.ts', writeFile() {}, getCurrentDirectory: () => '', getCanonicalFileName: (f) => f, useCaseSensitiveFileNames: () => true, getNewLine: () => '\n' };
console.log(ts.createProgram(['a.ts'], { noLib: true }, host).getSemanticDiagnostics().map((d) => [d.code, d.start, ts.flattenDiagnosticMessageText(d.messageText, '\n')]));
