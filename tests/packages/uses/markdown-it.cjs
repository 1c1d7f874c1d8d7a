const md = require('markdown-it')({ html: true, linkify: true, typographer: true });
console.log(md.render('# Title\n\n"Quotes" -- dash... (c) www.example.com\n\n1. a\n2. b\n   - c\n\n    code\n\n| x | y |\n|---|:-:|\n| 1 | 2 |\n\n[ref]: http://u.test "T"\n[ref] <b>raw</b> ~~s~~\n\n```js\nx < 1\n```'));
md.use((m) => { m.renderer.rules.strong_open = () => '<strong class="k">'; });
console.log(md.renderInline('**b** ü http://münchen.de/ä'), md.parse('a *b*', {}).map((t) => t.type), md.utils.escapeHtml('<"&>'));
