_teratron_prefixes() {  # of the .idx files
  local -a found=($PREFIX*.idx(N:r) $PREFIX*(N-/))
  compadd -f -- $found
}
