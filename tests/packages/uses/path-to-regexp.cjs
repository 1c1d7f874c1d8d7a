const { match, compile, pathToRegexp, parse, stringify } = require('path-to-regexp');
console.log(match('/user/:id/*rest')('/user/5/a/b%20c'), match('/a{/:b}')('/a'), match('/x')('/y'), compile('/u/:id{/:tab}')({ id: 'a b', tab: 'z' }), pathToRegexp('/:a-:b.html'), parse('/a{/:b}/*c').tokens, stringify(parse('/:x')));
try { parse('/:'); } catch (e) { console.log(e.name, e.message); } try { compile('/:a')({}); } catch (e) { console.log(e.message); }
