# The shell, and what is on every system: files, pipes, processes, text.
set -eu
greet() { echo "hello $1"; }
[[ $(greet you | cat) == "hello you" ]]
[[ $(cat <(echo substituted)) == substituted ]]
mkdir -p folder/inner && cd folder
echo 1 > a
cp -a a b && mv b c && ln -s c link && ln c hard
touch -d 2001-01-01 c && chmod 640 c && chown "$(id -u):$(id -g)" c
[[ $(stat -c %a-%h-%Y c) == 640-2-978307200 ]]
[[ $(readlink -f link) == "$PWD/c" ]]
mkdir x && mv x inner/y && rmdir inner/y
mkfifo /tmp/pipe && (echo through > /tmp/pipe &) && [[ $(cat /tmp/pipe) == through ]]
ls -la --color=always > /tmp/list && du -s . > /tmp/du && find . -name 'c*' -newer a -o -name c | sort > /tmp/found
[[ $(seq 30 | xargs -n 1 -P 4 echo | sort -n | tail -n 1) == 30 ]]
tar czf all.tgz c link hard && tar xzf all.tgz -C /tmp && cmp c /tmp/c
[[ $(sha256sum < c | cut -c1-8) == 4355a46b ]]
sed -i s/1/2/ c && [[ $(grep -rl 2 .) == ./c ]] && [[ $(awk '{ print $1 * 3 }' c) == 6 ]]
diff a c > /tmp/difference || (cd /tmp && cp "$OLDPWD/a" . && patch -s a difference && cmp a "$OLDPWD/c")
truncate -s 100 c && dd if=/dev/zero of=c bs=10 count=5 conv=notrunc,fsync status=none
timeout 5 nice env -i /bin/true
date +%s > /tmp/now && nproc > /tmp/cores && mktemp -d > /tmp/name && split -b 1 a /tmp/part && sync c
sleep 60 & kill $! && wait $! || [[ $? == 143 ]]
trap 'echo trapped > /tmp/trap' USR1 && kill -USR1 $$ && [[ $(cat /tmp/trap) == trapped ]]
ulimit -n 64 && [[ $(ulimit -n) == 64 ]]
ps > /tmp/processes 2>/dev/null || true
cd .. && rm -r folder
echo ok
