module program

go 1.23

require github.com/GIT_USER_ID/GIT_REPO_ID v0.0.0

replace github.com/GIT_USER_ID/GIT_REPO_ID => ../client
