const { Parser, parseDocument, DomUtils, parseFeed } = require('htmlparser2');
const log = [];
const parser = new Parser({ onopentag: (n, a) => log.push(['open', n, { ...a }]), ontext: (t) => log.push(['text', t]), onclosetag: (n) => log.push(['close', n]), oncomment: (c) => log.push(['comment', c]) }, { decodeEntities: true });
parser.write('<p class=a>x &lt; y<br>'); parser.write('<!-- c --><img src="q" /><b>bold</p>'); parser.end();
console.log(log);
const doc = parseDocument('<div><p id="a">one <b>two</b></p><p>three</p></div>');
console.log(DomUtils.textContent(doc), DomUtils.getElementsByTagName('p', doc).length, DomUtils.getOuterHTML(DomUtils.getElementById('a', doc)), parseFeed('<rss><channel><title>T</title><item><title>I</title><guid>1</guid></item></channel></rss>'));
