const jsonc = require('jsonc-parser');
const errors = [];
const text = '{\n  // comment\n  "a": [1, 2,],\n  "b": { "c": null }\n}';
console.log(jsonc.parse(text, errors, { allowTrailingComma: true }), errors, jsonc.parse('{"a": }', errors), errors.map((e) => jsonc.printParseErrorCode(e.error)));
const edits = jsonc.modify(text, ['b', 'd'], [true], { formattingOptions: { insertSpaces: true, tabSize: 2 } });
console.log(jsonc.applyEdits(text, edits), jsonc.getLocation(text, 35).path, jsonc.stripComments(text), jsonc.findNodeAtLocation(jsonc.parseTree(text), ['b', 'c']));
