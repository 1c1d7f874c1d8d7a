const React = require('react');
const { renderToString, renderToStaticMarkup, renderToPipeableStream } = require('react-dom/server');
const e = React.createElement; const Ctx = React.createContext('none');
const Item = React.memo(({ n, children }) => { const [v] = React.useState(() => n * 2); const t = React.useContext(Ctx); const id = React.useId(); return e('li', { className: 'i', 'data-id': typeof id, style: { color: 'red', marginTop: 4 } }, v, ' ', t, children); });
class C extends React.Component { state = { a: 1 }; render() { return e(React.Fragment, null, e('b', null, this.state.a), this.props.x && '<esc>&'); } }
const app = e(Ctx.Provider, { value: 'ctx' }, e('ul', { onClick() {} }, [1, 2].map((n) => e(Item, { key: n, n }, e(C, { x: true }))), e('input', { disabled: true, defaultValue: '"q"' }), e('div', { dangerouslySetInnerHTML: { __html: '<i>raw</i>' } })));
console.log(renderToString(app), renderToStaticMarkup(app), React.version.split('.')[0]);
const Late = React.lazy(async () => { await new Promise((f) => setTimeout(f, 3)); return { default: () => e('p', null, 'late') }; });
const { Writable } = require('stream'); let out = ''; const stream = renderToPipeableStream(e('div', null, e(React.Suspense, { fallback: '...' }, e(Late))), { onAllReady() { stream.pipe(new Writable({ write(c, _, cb) { out += c; cb(); }, final(cb) { console.log(out); cb(); } })); }, onError: (x) => console.log('error', x.message) });
