const Ajv = require('ajv');
const Ajv2020 = require('ajv/dist/2020');
const ajv = new Ajv({ allErrors: true, useDefaults: true, coerceTypes: true });
const validate = ajv.compile({ type: 'object', properties: { id: { type: 'integer', minimum: 1 }, tags: { type: 'array', items: { type: 'string', pattern: '^[a-z]+$' }, uniqueItems: true }, n: { type: 'number', default: 5 }, kind: { enum: ['a', 'b'] } }, required: ['id'], additionalProperties: false });
const good = { id: '3', tags: ['x'] }; console.log(validate(good), good, validate({ id: 0, tags: ['A', 'A'], z: 1, kind: 'c' }), validate.errors, ajv.errorsText(validate.errors));
const recursive = ajv.compile({ $id: 'tree', type: 'object', properties: { v: { type: 'number' }, kids: { type: 'array', items: { $ref: '#' } } }, required: ['v'] }); console.log(recursive({ v: 1, kids: [{ v: 2, kids: [{}] }] }), recursive.errors);
console.log(new Ajv2020().validate({ prefixItems: [{ type: 'string' }], items: false }, ['x', 1]), new Ajv().validate({ if: { minLength: 3 }, then: { maxLength: 4 } }, 'abcde'));
ajv.addKeyword({ keyword: 'even', validate: (s, d) => (d % 2 === 0) === s }); console.log(ajv.compile({ even: true })(3)); try { ajv.compile({ type: 'nope' }); } catch (e) { console.log(e.message.slice(0, 60)); }
