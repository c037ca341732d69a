# Blanks between words and punctuation marks, as in the files of CoNLL: for models of characters that read such files.
# usage: sed -E -f split-words.sed TEXT
s/[“”]/"/g
s/[‘’]/'/g
s/([][(){}"!?;])/ \1 /g
s/([,:])([^0-9]|$)/ \1 \2/g
s/\.\.\./ ... /g
s/n't([^A-Za-z]|$)/ n't\1/g
s/'(s|S|m|d|re|ve|ll)([^A-Za-z]|$)/ '\1\2/g
s/([^ .])\.(["') ]*)$/\1 .\2/
s/([a-z0-9)%][a-z0-9)"'%])\. +([A-Z"'(])/\1 . \2/g
s/  +/ /g
s/^ | $//g
