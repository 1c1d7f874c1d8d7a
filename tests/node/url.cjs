const url = require('url');
const urls = ['http://user:pass@host.com:8080/p/a?query=string#hash', 'HTTP://A.com/B', '/a/b?c=d#e', '//host/path', 'mailto:a@b.c', 'file:///etc/x', 'a/b', '?x', '#y', '',
  'http://[::1]:3000/x', 'http://ex.com/a b', 'data:text/plain,hi', 'javascript:alert(1)', 'http://\u00fc.com/'];
for (const text of urls) {
  console.log(text, { ...url.parse(text) }, { ...url.parse(text, true).query }, url.format(url.parse(text)));
}
for (const [from, to] of [['/one/two/three', 'four'], ['http://example.com/', '/one'], ['http://example.com/one', '/two'], ['a/b/c', '../d'], ['http://a/b/c/d;p?q', '../../../g'], ['http://a/b', '?q'], ['http://a/b', 'https://c/d']]) {
  console.log(url.resolve(from, to));
}
console.log(url.format({ protocol: 'http', host: 'a.com', pathname: 'x', query: { a: [1, 2] } }), url.fileURLToPath('file:///a%20b/c'), url.pathToFileURL('/a b#?%c').href);
for (const call of [() => url.fileURLToPath('http://a'), () => url.parse(5), () => url.fileURLToPath('file://host/x')]) try { call(); } catch (e) { console.log(e.name, e.code, e.message); }
console.log(url.urlToHttpOptions(new url.URL('http://a:b@c:1/d?e#f')).auth, url.URL === URL, url.domainToASCII('espa\u00f1ol.com'));
