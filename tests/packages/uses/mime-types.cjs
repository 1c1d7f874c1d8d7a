const mime = require('mime-types');
console.log(['json', '.md', 'a/b.TXT', 'x.mp4', 'nope', 'page.html', 'a.wasm'].map((x) => mime.lookup(x)), mime.contentType('markdown'), mime.contentType('file.json'), mime.extension('text/html; charset=UTF-8'), mime.charset('text/css'), mime.extensions['image/jpeg']);
