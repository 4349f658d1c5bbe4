# Draws bench's chart: data has "name <tab> stock <tab> series" for each event; without stock, "name <tab> <tab> series".
set terminal svg noenhanced size 1000,840 dynamic font 'sans-serif,13' background '#ffffff'
set output output_file
set datafile separator '\t'
set title 'Instructions per event with a BPF program'.(pair eq '' ? '' : ', PAIR='.pair)
stats data using 3 nooutput
rows = STATS_records
set xrange [0:]
set yrange [-rows + 0.4:0.6]
set xlabel 'instructions over the bare call (not time), fewer is better'
set grid xtics linecolor '#dddddd'
set offsets 0, graph 0.07, 0, 0
set border 3 linecolor '#444444'
set tics nomirror
set ytics scale 0
set key bottom right Left reverse spacing 1.3 opaque box linecolor '#dddddd'
set style fill solid noborder
plot data using ($2 / 2):(-$0 + 0.19):($2 / 2):(0.17):ytic(1) with boxxyerror linecolor '#8a8f98' title 'stock', \
     data using ($3 / 2):(-$0 - 0.19):($3 / 2):(0.17) with boxxyerror linecolor '#1f6fb4' title 'series', \
     data using 2:(-$0 + 0.19):(sprintf(' %.0f', $2)) with labels left font ',11' textcolor '#444444' notitle, \
     data using 3:(-$0 - 0.19):(sprintf(' %.0f', $3)) with labels left font ',11' textcolor '#111111' notitle
