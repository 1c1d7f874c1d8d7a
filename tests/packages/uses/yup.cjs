const yup = require('yup');
const schema = yup.object({ name: yup.string().required().trim().lowercase(), age: yup.number().positive().integer().nullable(), at: yup.date().default(() => new Date(0)), list: yup.array().of(yup.string().min(2)).min(1), site: yup.string().url() });
console.log(schema.cast({ name: '  ANN ', age: '24', list: ['xx'] }), schema.isValidSync({ name: 'x', list: [] }));
schema.validate({ age: -1.5, list: ['a'], site: 'q' }, { abortEarly: false }).catch((e) => console.log(e.name, e.errors, e.inner.map((i) => i.path)));
console.log(yup.reach(schema, 'list[0]').describe(), schema.pick(['name']).describe().fields.name.tests, yup.mixed().oneOf(['a', yup.ref('b')]).isValidSync('c'), yup.string().test('even', '${path} is odd', (v) => v.length % 2 === 0).isValidSync('abc'));
