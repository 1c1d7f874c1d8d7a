# Version control: objects, index, merges, worktrees, packs, hooks, clones of a local folder.
set -eu
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git init -q -b main repository && cd repository
printf '#!/bin/sh\necho hooked > /tmp/hook\n' > .git/hooks/post-commit && chmod +x .git/hooks/post-commit
for number in 1 2 3; do
    echo "$number" > "file$number" && git add . && git commit -q -m "commit $number"
done
[[ $(cat /tmp/hook) == hooked ]]
git checkout -q -b other HEAD~1 && echo other > other && git add other && git commit -q -m other
git merge -q -m merge main && git rebase -q main
echo change >> file1 && git stash -q && git stash pop -q && git checkout -q file1
git mv file1 moved && git commit -q -m move && git tag tagged && git gc -q && git fsck --no-progress --no-dangling
[[ $(git log --format=%s | wc -l) == 5 ]]
[[ -z $(git status --short) ]]
[[ $(git grep -n other -- other) == other:1:other ]]
git diff --stat HEAD~1 > /tmp/stat && git blame moved > /tmp/blame && git archive HEAD | tar t > /tmp/archive
git worktree add -q ../tree main && [[ -e ../tree/file3 ]] && git worktree remove ../tree
git clone -q . ../clone && cd ../clone && git pull -q && git push -q origin HEAD:pushed
cd .. && rm -rf repository clone
echo ok
