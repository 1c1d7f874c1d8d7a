const S = require('node:stream');
const cases = [
 async(S,l)=>{const r=S.Readable.from(['a','b','c']);for await(const x of r)l(x)},
 async(S,l)=>{const r=new S.Readable({read(){}});r.push('ab');r.push('cd');r.push(null);r.on('data',d=>l('data',d.toString()));r.on('end',()=>l('end'));r.on('close',()=>l('close'));await new Promise(f=>r.on('close',f))},
 async(S,l)=>{let n=0;const r=new S.Readable({highWaterMark:3,read(){n++;this.push(n>4?null:'x'.repeat(n))}});r.setEncoding('utf8');r.on('readable',()=>{let c;while((c=r.read())!==null)l(c)});await new Promise(f=>r.on('end',f));l('end')},
 async(S,l)=>{const w=new S.Writable({highWaterMark:3,write(c,e,cb){l('w',c.toString(),e);setTimeout(cb,1)},final(cb){l('final');cb()}});l(w.write('ab'));l(w.write('cd'));w.on('drain',()=>{l('drain');w.end('last',()=>l('endcb'))});w.on('finish',()=>l('finish'));w.on('close',()=>l('close'));await new Promise(f=>w.on('close',f))},
 async(S,l)=>{const t=new S.Transform({transform(c,e,cb){cb(null,c.toString().toUpperCase())},flush(cb){this.push('!');cb()}});t.on('data',d=>l(d.toString()));t.write('ab');t.end('cd');await new Promise(f=>t.on('end',f));l('end')},
 async(S,l)=>{const out=[];await S.promises.pipeline(S.Readable.from(['a','b']),new S.Transform({objectMode:true,transform(c,e,cb){cb(null,c+c)}}),new S.Writable({objectMode:true,write(c,e,cb){out.push(c);cb()}}));l(out)},
 async(S,l)=>{try{await S.promises.pipeline(S.Readable.from(['a']),new S.Transform({transform(c,e,cb){cb(new Error('boom'))}}),new S.PassThrough().resume());}catch(e){l(e.message)}},
 async(S,l)=>{l(await S.promises.pipeline(S.Readable.from([1,2,3]),async function*(s){for await(const x of s)yield x*2},async s=>{let t=0;for await(const x of s)t+=x;return t}))},
 async(S,l)=>{const w=new S.Writable({write(c,e,cb){cb()}});w.end();w.on('error',e=>l(e.code));w.write('x',e=>l('cb',e.code));await new Promise(f=>w.on('close',f));l(w.destroyed,w.errored?.code)},
 async(S,l)=>{const r=new S.Readable({read(){}});r.on('error',e=>l('err',e.message));r.on('close',()=>l('close'));r.destroy(new Error('x'));await new Promise(f=>setTimeout(f,5));l(r.destroyed,r.readable)},
 async(S,l)=>{const p=new S.PassThrough();p.end('hello');const q=p.pipe(new S.PassThrough());let s='';for await(const c of q)s+=c;l(s)},
 async(S,l)=>{l(await S.Readable.from([1,2,3,4]).filter(x=>x%2).map(x=>x*10).toArray());l(await S.Readable.from([1,2,3]).reduce((a,b)=>a+b))},
 async(S,l)=>{const d=new S.Duplex({read(){this.push('r');this.push(null)},write(c,e,cb){l('w'+c);cb()}});d.on('data',c=>l(c.toString()));d.on('end',()=>l('end'));d.on('finish',()=>l('finish'));d.on('close',()=>l('close'));d.end('z');await new Promise(f=>d.on('close',f))},
 async(S,l)=>{const r=new S.Readable({read(){}});r.push('hello world');r.push(null);await new Promise(f=>r.once('readable',f));l(r.read(5).toString());l(r.read(1).toString());l(r.read().toString(),r.read())},
 async(S,l)=>{S.finished(S.Readable.from(['a']).resume(),e=>l('fin',e));await new Promise(f=>setTimeout(f,5))},
 async(S,l)=>{const r=new S.Readable({read(){}});S.finished(r,e=>l(e&&e.code));r.destroy();await new Promise(f=>setTimeout(f,5))},
 async(S,l)=>{const w=new S.Writable({writev(cs,cb){l(cs.map(c=>c.chunk.toString()));cb()}});w.cork();w.write('a');w.write('b');w.uncork();w.end('c');await new Promise(f=>w.on('finish',f))},
 async(S,l)=>{l(new S.Readable() instanceof S.Stream,new S.Duplex() instanceof S.Writable,new S.Duplex() instanceof S.Readable,new S.PassThrough() instanceof S.Transform,S.Stream===S);try{new S.Writable().write(5)}catch(e){l(e.code,e.message)}try{new S.Writable().write(null)}catch(e){l(e.code)}},
 async(S,l)=>{const r=new S.Readable({objectMode:true,read(){}});r.push({a:1});r.push(0);r.push('');r.push(null);r.on('data',d=>l(d));await new Promise(f=>r.on('end',f))},
 async(S,l)=>{const r=new S.Readable({encoding:'utf8',read(){}});r.push(Buffer.from([0xe2,0x82]));r.push(Buffer.from([0xac]));r.push(null);for await(const c of r)l(c)},
 async(S,l)=>{class C extends S.Transform{constructor(){super({readableObjectMode:true})}_transform(c,e,cb){for(const x of c.toString().split(','))this.push({x});cb()}};const c=new C();c.end('1,2,3');l(await c.toArray())},
 async(S,l)=>{const ac=new AbortController();const r=new S.Readable({read(){},signal:ac.signal});r.on('error',e=>l(e.name,e.code));setTimeout(()=>ac.abort(),1);await new Promise(f=>r.on('close',f))},
 async(S,l)=>{const r=S.Readable.from(['a','b','c']);for await(const x of r){l(x);break}l(r.destroyed)},
 async(S,l)=>{const r=new S.Readable({read(){}});r.push('a');r.pause();r.on('data',d=>l(d+''));setTimeout(()=>{l('res');r.resume();r.push(null)},2);await new Promise(f=>r.on('end',f));l('e')},
 async(S,l)=>{const r=new S.Readable({read(){}});r.push('b');r.unshift('a');r.push(null);l((await r.toArray()).map(String))},
 async(S,l)=>{const big=S.Readable.from((function*(){for(let i=0;i<200;i++)yield 'x'.repeat(1000)})(),{objectMode:false});let n=0;await S.promises.pipeline(big,new S.PassThrough({highWaterMark:100}),new S.Writable({highWaterMark:10,write(c,e,cb){n+=c.length;setImmediate(cb)}}));l(n)},
 async(S,l)=>{const w=new S.Writable({construct(cb){l('c');setTimeout(cb,1)},write(c,e,cb){l('w'+c);cb()}});w.end('x');await new Promise(f=>w.on('close',f));l('closed')},
 async(S,l)=>{let s='';for await(const c of S.Readable.fromWeb(new ReadableStream({start(c){c.enqueue(Buffer.from('hi'));c.close()}})))s+=c;l(s)},
];
(async () => {
  for (const [i, run] of cases.entries()) {
    const seen = [];
    try { await run(S, (...all) => seen.push(all)); } catch (e) { seen.push(e.message); }
    console.log(i, seen);
  }
})();
