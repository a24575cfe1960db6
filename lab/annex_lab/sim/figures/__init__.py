"""The papers' figures, made again from simulated runs, some measured on this machine: annex-lab figures.

    runs      one simulated run by all that it depends on, and the file that its result is in
    runner    runs that are left, some at a time; what is there is not run again
    host      a measurement on this machine, for figures that are of real time
    metrics   what a figure may ask of a run
    values    ratios of them by workload and seed, and their means with intervals
    cells     a number of a figure beside the paper's
    figure    what a figure is: its runs, its cells, how it is drawn; and a paper
    draw, write, page   SVG; CSV, Markdown and the index; one page of all
    campaign_data, told   the CSV in docs/campaigns, and the pages of docs/ that templates make of them
    speedmalloc/  the figures of SpeedMalloc; a folder for each paper
    papers        all of them

Each may import those above it.
"""
