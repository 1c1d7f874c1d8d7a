import { marked, Marked, lexer } from 'marked';
console.log(marked.parse('# Title\n\nA *b* **c** `d` [l](u "t") ![i](p)\n\n- x\n  1. y\n- [ ] z\n\n> q\n\n```js\nlet a = 1 < 2;\n```\n\n| a | b |\n|:-:|--:|\n| 1 | 2 |\n\n<div>raw</div>\n\n---\nhttp://x.test ~~gone~~'));
const own = new Marked({ renderer: { heading({ tokens, depth }) { return `<h${depth} class="mine">${this.parser.parseInline(tokens)}</h${depth}>\n`; } } });
console.log(own.parse('## *Hi*'), lexer('a\n\nb').map((t) => t.type), marked.parseInline('_x_ &amp; <b>'));
