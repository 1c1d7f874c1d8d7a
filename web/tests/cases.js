// Writes web.txt: every case below with what Node's console wrote (`node web/tests/cases.js > web/tests/cases.txt`, Node 20).
// Both engines run the cases.
const cases = [
  `const u = new URL('https://user:pa%20ss@Example.com:8080/a/../b%7Ec/?q=1&q=two words&empty#frag'); console.log(u.href, u.origin, u.protocol, u.username, u.password, u.host, u.hostname, u.port, u.pathname, u.search, u.hash); console.log(String(u), JSON.stringify({ u }))`,
  `console.log(new URL('../x?y#z', 'http://a.b/c/d/e'), new URL('//h/p', 'https://q').href, new URL('?only', 'http://a/b?c').href)`,
  `console.log(new URL('http://münchen.de/ä?ö#ü').href, new URL('http://xn--nxasmq6b/').host, new URL('HTTP://EX%41MPLE/').href)`,
  `console.log([new URL('http://a/?x=1&y=2')])`,
  `for (const bad of ['', 'nope', 'http://', 'http://[::1', 'http://a:99999', '//x']) try { new URL(bad); } catch (e) { console.log(e.name, e.code, e.message, e.input, e.base, e instanceof TypeError) }`,
  `try { new URL('x', 'y'); } catch (e) { console.log(e.code, e.input, e.base) } try { new URL(); } catch (e) { console.log(e.name, e.code) } try { URL('http://a'); } catch (e) { console.log(e.message) }`,
  `console.log(URL.canParse('http://a'), URL.canParse('a'), URL.canParse('a', 'http://b'), URL.name, URL.length, URLSearchParams.length)`,
  `const u = new URL('http://a.b/c'); u.protocol = 'https'; u.host = 'x.y:81'; u.pathname = 'p q'; u.search = 'a=b c'; u.hash = 'h'; u.username = 'me'; u.password = 'p@'; console.log(u.href); u.port = 'x'; u.hostname = ''; u.port = '443'; console.log(u.href); u.search = ''; u.hash = ''; console.log(u.href, u.search)`,
  `const u = new URL('http://a/?x=1'); const p = u.searchParams; p.append('y', 'a b&c'); p.set('x', 'ü'); console.log(u.href, p.get('y'), p === u.searchParams); u.search = '?z=3'; console.log([...p]); p.delete('z'); console.log(u.href, p.size); u.href = 'http://b/?k=v'; console.log(p.get('k'), String(p))`,
  `try { const u = new URL('http://a'); u.href = 'bad'; } catch (e) { console.log(e.code, e.input) }`,
  `const p = new URLSearchParams('?a=1&b=2&a=3&c'); console.log(p, p.get('a'), p.getAll('a'), p.get('zz'), p.has('c'), p.has('a', '9'), p.toString(), p.size)`,
  `console.log(new URLSearchParams({ a: 1, b: 'x y', c: null }).toString(), new URLSearchParams([['k', 'v'], ['k', 'w']]).toString(), new URLSearchParams(new Map([['m', 1]])).toString(), new URLSearchParams(new URLSearchParams('q=1')).toString(), new URLSearchParams().toString(), new URLSearchParams(undefined).size)`,
  `const p = new URLSearchParams('z=1&a=2&z=0&a=1'); p.sort(); console.log(p.toString()); p.delete('z', '0'); p.append('n', undefined); console.log(p.toString(), [...p.keys()], [...p.values()], [...p.entries()]); p.forEach((value, name, whole) => console.log(name, value, whole === p)); for (const [k, v] of p) console.log(k, v)`,
  `for (const bad of [[['a']], [['a', 'b', 'c']], [1], { [Symbol.iterator]: 1 }]) try { new URLSearchParams(bad); console.log('fine') } catch (e) { console.log(e.name, e.code) }`,
  `console.log(Object.prototype.toString.call(new URL('http://a')), Object.prototype.toString.call(new URLSearchParams()), Object.keys(new URL('http://a')), Object.keys(URL.prototype).length, typeof URL.prototype[Symbol.iterator], URLSearchParams.prototype[Symbol.iterator] === URLSearchParams.prototype.entries)`,
  `console.log(new URLSearchParams('a=%zz&b=%E4%BD%A0+%F0%9F%98%80&=x&y=').toString(), [...new URLSearchParams('a=%zz&b=%E4%BD%A0+&=x&y=')])`,
  `console.log(new URL('blob:https://a.b/c').origin, new URL('file:///x/y').origin, new URL('mailto:a@b').pathname, new URL('data:text/plain,hi').href, new URL('http://0x7f.1/').hostname, new URL('http://[::0:1]/').host)`,
  `class Link extends URL { get short() { return this.host + this.pathname } } console.log(new Link('http://a/b').short, new Link('http://a/b') instanceof URL)`,
  `console.log(btoa('hello'), btoa(''), atob('aGVsbG8='), atob(' aGVs\\nbG8 '), atob('YQ'), btoa('\\u00ff\\u0000'), atob('/w==').charCodeAt(0), btoa(12), atob(null).length)`,
  `for (const f of [() => btoa('ü€'), () => atob('a'), () => atob('$$$$'), () => atob('YQ='), () => atob()]) try { f(); } catch (e) { console.log(e.name, e.code, e instanceof Error, e.constructor.name) }`,
  `const e = new DOMException('boom', 'AbortError'); console.log(e.name, e.message, e.code, String(e), e instanceof DOMException, e instanceof Error, Object.prototype.toString.call(e), new DOMException().name, new DOMException('m', { name: 'X', cause: 1 }).cause)`,
  `const o = { n: 1, s: 'x', u: undefined, b: 5n, d: new Date(5), r: /a/gi, a: [1, , 3], m: new Map([['k', { v: 1 }]]), t: new Set([[1]]), w: Object('ab') }; o.self = o; o.a.push(o.m); const c = structuredClone(o); console.log(c, c !== o, c.self === c, c.a[3] === c.m, c.m.get('k') !== o.m.get('k'), c.r.lastIndex)`,
  `class P { constructor() { this.x = 1 } get y() { return 2 } } const c = structuredClone(Object.assign(new P(), { get z() { return 3 } })); console.log(c, c.constructor === Object, structuredClone([1, 2]).length, structuredClone('t'), structuredClone(null), structuredClone(undefined))`,
  `const e = structuredClone(Object.assign(new RangeError('bad', { cause: { why: 1 } }), { extra: 1 })); console.log(e.name, e.message, e instanceof RangeError, e.cause, e.extra, typeof e.stack); const f = structuredClone(Object.assign(new Error('m'), { name: 'Odd' })); console.log(f.name)`,
  `for (const v of [() => {}, Symbol('s'), { f() {} }, Promise.resolve(1), new WeakMap(), [Symbol.iterator], new Proxy({}, {}), Object(Symbol('q'))]) try { structuredClone(v); console.log('fine') } catch (e) { console.log(e.name, e.code, e instanceof DOMException) }`,
  `try { structuredClone() } catch (e) { console.log(e.name, e.code) } console.log(structuredClone({ a: 1 }, { transfer: [] }))`,
  `for (const options of [5, '', true, 1n, Symbol('s'), null, undefined, [], () => {}]) try { console.log(structuredClone(1, options)) } catch (e) { console.log(e.name, e.code, e.message) }`,
  `const m = new Map(); m.set(m, m); const c = structuredClone(m); console.log([...c][0][0] === c, c.size); const n = structuredClone({ __proto__: { inherited: 1 }, ['__proto__']: 2, [Symbol('s')]: 1, 7: 'seven' }); console.log(n, Object.keys(n))`,
  `const id = crypto.randomUUID(); console.log(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(id), id !== crypto.randomUUID(), typeof crypto)`,
  `console.log(Object.getOwnPropertyDescriptor(URL.prototype, 'href').enumerable, Object.getOwnPropertyDescriptor(globalThis, 'URL').enumerable, URL.prototype.constructor === URL, Reflect.ownKeys(new URL('http://a')).length)`,
  `try { URL.prototype.href } catch (e) { console.log(e instanceof TypeError) } try { URLSearchParams.prototype.get.call({}, 'a') } catch (e) { console.log(e.code) } try { new URLSearchParams().get() } catch (e) { console.log(e.code) }`,
  `const it = new URLSearchParams('a=1&b=2').keys(); console.log(it.next(), it[Symbol.iterator]() === it, [...it], it.next(), Object.prototype.toString.call(it))`,
];
const out = [];
for (const script of cases) {
  const lines = [];
  const stream = new (require('stream').Writable)({
    write(chunk, encoding, done) { lines.push(String(chunk).replace(/\n$/, '')); done(); },
  });
  const console = new (require('console').Console)({ stdout: stream, stderr: stream, colorMode: false });
  new Function('console', "'use strict';" + script)(console);
  out.push(script + '\n-----\n' + lines.join('\n'));
}
process.stdout.write(out.join('\n=====\n') + '\n=====\n');
