const headers = new Headers({ 'X-One': ' 1 ', accept: 'a' });
headers.append('x-one', '2');
headers.append('Set-Cookie', 'a=1');
headers.append('set-cookie', 'b=2');
console.log(headers.get('X-ONE'), headers.has('nope'), headers.get('nope'), headers.getSetCookie());
console.log([...headers], [...headers.keys()].length, [...headers.values()].join());
headers.set('X-One', '3');
headers.delete('accept');
headers.forEach((value, name, all) => console.log(name, value, all === headers));
console.log([...new Headers([['b', '2'], ['a', '1']]).entries()].flat().join());
for (const wrong of [() => new Headers({ 'a b': 1 }), () => new Headers({ a: 'x\ny' }), () => headers.append('ü', 1), () => new Headers(null), () => new Headers([['a']]), () => Headers()]) {
  try { wrong(); console.log('no error'); } catch (error) { console.log(error.name); }
}
const copy = new Headers(headers);
copy.set('x-one', '4');
console.log(headers.get('x-one'), copy.get('x-one'), Object.prototype.toString.call(copy), typeof copy.entries().next);
async function main() {
  const response = new Response('{"a":[1,"ü"]}', { status: 201, statusText: 'Made', headers: { 'x-a': 'b' } });
  console.log(response.status, response.ok, response.statusText, response.type, response.url === '', response.redirected, response.bodyUsed);
  console.log(response.headers.get('content-type'), response.headers.get('x-a'));
  const second = response.clone();
  console.log((await response.json()).a[1], response.bodyUsed, second.bodyUsed, (await second.arrayBuffer()).byteLength);
  for (const again of [() => response.text(), () => second.text()]) await again().catch((error) => console.log(error.name));
  try { response.clone(); } catch (error) { console.log(error.name); }
  console.log(await new Response().text() === '', await new Response(new URLSearchParams({ a: 'x y' })).text());
  console.log(new Response(new URLSearchParams()).headers.get('content-type'), new Response(new Uint8Array(2)).headers.get('content-type'));
  const bytes = new Uint8Array([239, 187, 191, 104, 105, 255]);
  const kept = new Response(bytes);
  bytes[3] = 0;
  console.log(await kept.text(), await new Response(new DataView(bytes.buffer, 4, 1)).text(), await new Response(5).text());
  console.log(await Response.json({ x: 1 }, { status: 202 }).text(), Response.json(null).headers.get('content-type'));
  console.log(Response.error().type, Response.error().status, Response.redirect('http://a/b', 307).headers.get('location'));
  for (const wrong of [() => new Response('', { status: 204 }), () => new Response('', { status: 99 }), () => new Response('', { statusText: '\n' }), () => Response.redirect('http://a', 200), () => Response.json(undefined), () => Response.error().headers.set('a', 'b')]) {
    try { wrong(); console.log('no error'); } catch (error) { console.log(error.name); }
  }
  const request = new Request('http://a/b?c#d', { method: 'post', headers: { a: 'b' }, body: 'text' });
  const other = new Request(request, { headers: { c: 'd' } });
  console.log(request.method, request.url, request.bodyUsed, other.headers.get('a'), other.headers.get('c'), await other.text(), other.redirect);
  console.log(new Request('http://a', { method: 'pUt' }).method, new Request('http://a').clone().url);
  for (const wrong of [() => new Request('/a'), () => new Request('http://u:p@a'), () => new Request('http://a', { body: 'x' }), () => new Request('http://a', { method: 'TRACE' }), () => new Request('http://a', { method: 'a b' }), () => new Request(), () => new Request('http://a', { redirect: 'x' })]) {
    try { wrong(); console.log('no error'); } catch (error) { console.log(error.name); }
  }
  const unread = await new Response('[1').json().catch((error) => error.name);
  console.log(unread, [...new Response('x', { headers: [['b', '1'], ['a', '2']] }).headers].join(' '));
}
main();
