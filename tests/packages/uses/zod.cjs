const { z } = require('zod');
const User = z.object({ id: z.number().int().positive(), email: z.string().email(), role: z.enum(['admin', 'user']).default('user'), tags: z.array(z.string().min(2)).optional(), at: z.coerce.date() }).strict();
console.log(User.parse({ id: 1, email: 'a@b.co', at: 0 }), User.safeParse({ id: -1.5, email: 'x', tags: ['a'], at: 'nope', extra: 1 }).error.issues);
const Shape = z.discriminatedUnion('kind', [z.object({ kind: z.literal('c'), r: z.number() }), z.object({ kind: z.literal('s'), w: z.number() })]); console.log(Shape.parse({ kind: 'c', r: 1 }), Shape.safeParse({ kind: 'q' }).success);
console.log(z.string().transform((s) => s.length).pipe(z.number().max(3)).safeParse('four').success, z.record(z.string(), z.number()).parse({ a: 1 }), z.tuple([z.string(), z.number()]).rest(z.boolean()).parse(['a', 1, true]), z.string().trim().toUpperCase().parse(' x '));
(async () => { console.log(await z.string().refine(async (v) => v === 'ok', 'not ok').safeParseAsync('no').then((r) => r.error.flatten())); })(); try { z.string().parse(5); } catch (e) { console.log(e.name, e.message, e instanceof z.ZodError); }
console.log(JSON.stringify(z.toJSONSchema(User, { unrepresentable: 'any' })), z.uuid().safeParse('x').success, z.iso.datetime().safeParse('2020-01-01T00:00:00Z').success);
