from creperie import annotation as annotation
from creperie import auditing as auditing
from creperie import bench as bench
from creperie import core as core
from creperie import engine as engine
from creperie import lang as lang
from creperie import making as making
from creperie import metrics as metrics
from creperie import models as models
from creperie import recipes as recipes
from creperie import refining as refining
from creperie import reporting as reporting
from creperie import scoring as scoring
from creperie import statistics as statistics
from creperie import training as training
from creperie import world as world
from creperie.auditing.run import audit as audit
from creperie.bench.benchmark import Benchmark as Benchmark
from creperie.bench.frames import from_pandas as from_pandas
from creperie.bench.item import Item as Item
from creperie.bench.spec import load as load
from creperie.bench.storage import save as save
from creperie.core.errors import CreperieError as CreperieError
from creperie.core.version import __version__ as __version__
from creperie.making.generation import make as make
from creperie.making.run import Made as Made
from creperie.models.registry import load_model
from creperie.models.wrapping import wrap as wrap
from creperie.recipes.preflight import cook as cook
from creperie.refining.refinement import refine as refine
from creperie.reporting.page import report as report
from creperie.scoring.compare_runs import compare as compare
from creperie.scoring.run import Run as Run
from creperie.scoring.run import load_run as load_run
from creperie.scoring.score_runs import score as score
from creperie.training.fit import train as train

model = load_model
