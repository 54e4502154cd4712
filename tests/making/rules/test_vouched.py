"""What rules vouch for without a corpus and without a judge: each caption was refused before, and gets a foil now."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from creperie.making import Made, MakerOptions


def made_of(previewed: Callable[..., Made], parser: str, maker: str, caption: str) -> dict[str, str]:
    """Return the foils of a caption that is its own corpus, with the edits that made them."""
    options = MakerOptions(parser=parser, matched=False, foils=20)
    (outcome,) = previewed(maker, [caption], options).outcomes
    return {c.text: c.edit for c in outcome.accepted}


@pytest.mark.parametrize(
    ("caption", "foil"),
    [
        ("A welder stands on a crate.", "A welder sits on a crate."),
        ("Two nuns are sitting near a fountain.", "Two nuns are standing near a fountain."),
        ("A pony stands beside a gate.", "A pony lies beside a gate."),
        ("A boy pushes a heavy cart.", "A boy pulls a heavy cart."),
        ("A girl throws a ball.", "A girl catches a ball."),
        ("A runner in white enters the stadium.", "A runner in white leaves the stadium."),
        ("Two men walk out of a bank.", "Two men walk into a bank."),
        ("A couple is walking up a hill.", "A couple is walking down a hill."),
        ("A bus in front of a truck.", "A bus behind a truck."),
        ("A kitten lies under a bed.", "A kitten lies on a bed."),
        ("A woman reads outside a cafe.", "A woman reads inside a cafe."),
        ("A goat with a red collar.", "A goat without a collar."),
        ("Six ceramic bowls on a shelf.", "Six metal bowls on a shelf."),
        ("A round wool rug.", "A round cotton rug."),
        ("Empty shelves in a bakery.", "Full shelves in a bakery."),
        ("Pilgrims cross the old bridge.", "Pilgrims cross the new bridge."),
        ("A bicycle with a rear rack.", "A bicycle with a front rack."),
        ("Large pumpkins in a field.", "Small pumpkins in a field."),
        ("Two climbers drink tea on a ledge.", "Two climbers drink coffee on a ledge."),
        ("Two children ride a donkey.", "Two children ride a camel."),
        ("A violinist naps on a sofa.", "A violinist naps on a chair."),
        ("A gray cat is sleeping near the stove.", "A gray dog is sleeping near the stove."),
        ("Small attic room with shelves.", "Small attic room without shelves."),
        ("A man repairs a kite.", "A woman repairs a kite."),
        ("A child is drawing a house.", "A woman is drawing a house."),
        ("Four cups on a shelf.", "Three cups on a shelf."),
        ("A girl in a yellow jacket waves.", "A girl in a blue jacket waves."),
        ("A goat with a red ribbon.", "A goat with a black ribbon."),
        ("There is a young man on a bridge.", "There is an old man on a bridge."),
        ("A woman with long hair is singing.", "A woman with short hair is singing."),
        ("A boy does a trick in a park.", "Two boys do a trick in a park."),
        ("Two goats are standing on a wall.", "One goat is standing on a wall."),
        ("Three nuns pose for a picture.", "One nun poses for a picture."),
        ("A girl plays with two kittens on a rug.", "A girl plays with one kitten on a rug."),
        ("Two goats and a pony graze.", "One goat and a pony graze."),
        ("Several nuns wait outside.", "Two nuns wait outside."),
        ("A group of young welders is waiting.", "Two young welders are waiting."),
        ("Several nuns wait outside.", "One nun waits outside."),
        ("A couple of goats are grazing.", "Five goats are grazing."),
        ("Five goats are grazing.", "A couple of goats are grazing."),
        ("Two nuns wait outside.", "Several nuns wait outside."),
        ("Two old nuns wait outside.", "Several old nuns wait outside."),
        ("A nun carries a bag.", "Four nuns carry a bag."),
        ("A cat sits in front of a crowd of tourists.", "A cat sits in front of two tourists."),
        ("A welder rides a bicycle.", "A welder pushes a bicycle."),
        ("A nun is wearing a helmet.", "A nun is holding a helmet."),
        ("A nun eats an apple.", "A nun sells an apple."),
        ("Two pilgrims sit on a boulder.", "Two pilgrims sit beside a boulder."),
        ("A pony jumps over a hurdle.", "A pony jumps around a hurdle."),
        ("A goat stands in a lake.", "A goat stands beside a lake."),
        ("A nun stands near a wall.", "A nun kneels near a wall."),
        ("Welders carry a ladder through a gate.", "Firefighters carry a ladder through a gate."),
        ("A miner walks past a garbage truck.", "A miner walks past a van."),
        ("A tulip in a narrow vase.", "A rose in a narrow vase."),
        ("A tulip in a narrow vase.", "A tulip in a wide vase."),
        ("Two spaniels sleep near a stove.", "Two rabbits sleep near a stove."),
        ("A nun hugs her dog.", "A nun hugs her cat."),
        ("Silk scarf beside a mug.", "Silk scarf beside a bowl."),
        ("A group of pilgrims climb a hill.", "Two pilgrims climb a hill."),
        ("A welder waits near a crate.", "Welders wait near a crate."),
        ("Two pots on a folded blanket.", "Two pots beside a folded blanket."),
        ("Two pots on a folded blanket.", "Two pots on a crumpled blanket."),
        ("Two nuns wait outside.", "A lone nun waits outside."),
        ("An antique radio on a shelf.", "A modern radio on a shelf."),
        ("A nun walks along a flooded road.", "A nun walks along a dry road."),
        ("A large crate stands near a tall lamp.", "A small crate stands near a tall lamp."),
        ("A kiosk at night.", "A kiosk in daylight."),
        ("A nun crosses a bridge in the rain.", "A nun crosses a bridge in the sun."),
        ("Pilgrims climb a hill on foot.", "Pilgrims climb a hill on horseback."),
        ("A man in a red helmet jumping off a wall.", "A man in a blue helmet jumping off a wall."),
    ],
)
def test_what_rules_vouch_for(caption: str, foil: str, previewed: Callable[..., Made], parser: str) -> None:
    assert foil in made_of(previewed, parser, "rules:replace", caption)


@pytest.mark.parametrize(
    ("caption", "never"),
    [
        ("A dog catches a ball.", "A dog throws a ball."),
        ("Three nuns wait outside.", "Several nuns wait outside."),
        ("The two nuns wait outside.", "The a group of nuns wait outside."),
        ("A welder rides a bicycle down a hill.", "A welder washes a bicycle down a hill."),
        ("A nun wearing a helmet climbs a wall.", "A nun holding a helmet climbs a wall."),
        ("A boy jumps off a pier into a lake.", "A boy jumps off a pier out of a lake."),
        ("A pony runs along a wall.", "A pony kneels along a wall."),
        ("A man sits in an armchair.", "A man stands in an armchair."),
        ("Four people walk in the same direction.", "Four people sit in the same direction."),
        ("A bathroom with black tiles on the floor.", "A bathroom without tiles on the floor."),
        ("A boy with blue eyes.", "A boy without eyes."),
        ("A referee shows a yellow card.", "A referee shows a pink card."),
        ("A soldier looks out from an armoured truck.", "A soldier looks out from an armoured taxi."),
        ("A dog chases a ball.", "A rabbit chases a ball."),
        ("A tartan wool scarf.", "A silk wool scarf."),
        ("A woman with a long coat.", "A woman without a coat."),
        ("A man without a shirt climbs a wall.", "A girl without a shirt climbs a wall."),
        ("A man is smoking on a bench.", "A girl is smoking on a bench."),
        ("A baker is surrounded by pigeons.", "A baker is surrounded by crows."),
        ("A girl in a bathroom holds a towel.", "A girl in an office holds a towel."),
        ("Two white polar bears in a yard.", "Two brown polar bears in a yard."),
        ("A mirror is above a sink.", "A mirror is below a sink."),
        ("A lone cyclist rides past.", "Two lone cyclists ride past."),
        ("A dog runs for a tennis ball.", "A cat runs for a tennis ball."),
        ("A pony with white fur.", "A pony with orange fur."),
        ("Marble bathroom with two basins.", "Wooden bathroom with two basins."),
        ("A cat with white paws.", "A cat without paws."),
        ("A girl looks into a pool.", "A girl looks out of a pool."),
        ("A dog with a reflective harness looks at a camera.", "Two dogs with a reflective harness looks at a camera."),
        ("A toilet with a black seat.", "Two toilets with a black seat."),
        ("A girl sits beside a boy in a hat.", "A girl sits beside two boys in a hat."),
        ("A woman in a white top waves.", "Two women in a white top wave."),
        ("A player is about to dunk the ball.", "Two players are about to dunk the ball."),
        ("A man stands on a skate board.", "Two men stand on a skate board."),
        ("A kitten sleeps in an open suitcase.", "A kitten sleeps in a closed suitcase."),
        ("A man sits behind a table.", "A man sits in front of a table."),
        ("A sheep stands under a fence.", "A horse stands under a fence."),
        ("A bathroom with a toilet.", "A kitchen with a toilet."),
        ("A dog plays with a toy on the beach.", "A dog plays with a book on the beach."),
        ("A man in glasses and checkered shirt.", "Two men in glasses and checkered shirt."),
        ("A nurse holding a slice of pizza.", "Two nurses holding a slice of pizza."),
        ("A surfer in a wet suit waves.", "A surfer in a dry suit waves."),
        ("A baker stands in front of a small TV.", "A baker stands in front of a small Computer."),
        ("A bathroom with a toilet standing next to a tub.", "A bathroom without a toilet standing next to a tub."),
        ("A busy street with cars.", "A deserted street with cars."),
        ("Two nuns hug in a garden.", "One nun hugs in a garden."),
        ("Two boys ride bikes.", "One boy rides bikes."),
        ("Two men in suits wait.", "One man in suits waits."),
        ("Two girls hold their hats.", "One girl holds their hats."),
        ("Two dogs chase one ball.", "One dog chases one ball."),
        ("Two goats stand side by side.", "One goat stands side by side."),
        ("The two goats sleep.", "The one goat sleeps."),
        ("A tower with two clock faces.", "A tower with one clock face."),
        ("A boy gives two thumbs up.", "A boy gives one thumb up."),
        ("Children ride through several tourists.", "Children ride through two tourists."),
        ("A group of young men and women wait.", "Two young men and women wait."),
        ("Several nuns sit in a circle.", "Two nuns sit in a circle."),
        ("A couple of nuns ride a pair of skis.", "Five nuns ride a pair of skis."),
        ("A tower with two clocks.", "A tower with three clocks."),  # on its other sides
        ("A clock tower with clock faces on two sides.", "A clock tower with clock faces on four sides."),
        ("A flock of five geese waits.", "A flock of one goose waits."),
        ("A man in white runs while a dog waits.", "Two men in white runs while a dog waits."),
        ("Battery charger beside a lamp.", "Battery goat beside a lamp."),
        ("A charger beside a lamp.", "A goat beside a lamp."),
        ("A machine stands near a grinder.", "A machine stands near a burger."),
        ("Marble coasters on a tray.", "Marble soldiers on a tray."),
        ("Officials said that a bridge is closed.", "Soldiers said that a bridge is closed."),
        ("A surgeon performs surgery.", "A chef performs surgery."),
        ("A jockey puts a saddle on a horse.", "A jockey puts a saddle on a cow."),
        ("A toilet with a seat.", "A sink with a seat."),
        ("A bird on a building.", "A bird on a bank."),
        ("A black dog holds a ball in the water.", "A black dog holds a ball in the tea."),
        ("Young nuns play and one nun falls.", "Young nuns play and one soldier falls."),
        ("A zebra looks up while another grazes.", "A camel looks up while another grazes."),
        ("A group of girls in dresses.", "A group of men in dresses."),
        ("A full jar of honey.", "An empty jar of honey."),
        ("The small crate hangs from the large one.", "The big crate hangs from the large one."),
        ("A stack of six bowls.", "A stack of one bowl."),
        ("A mountain in the background.", "A mountain in the foreground."),
        ("Fans with painted faces wait.", "A single fan with painted faces waits."),
        ("A nun drinks from a mug.", "A nun drinks from a cup."),
        ("The pilgrim takes her hat off.", "The monk takes her hat off."),
        ("A person brushes his or her teeth.", "A person brushes her or her teeth."),
        ("Young kid playing tee ball in a park.", "Elderly kid playing tee ball in a park."),
    ],
)
def test_what_nobody_vouches_for(caption: str, never: str, previewed: Callable[..., Made], parser: str) -> None:
    assert never not in made_of(previewed, parser, "rules:replace", caption)


@pytest.mark.parametrize(
    ("caption", "swap"),
    [
        ("A wooden crate stands in front of a lamp.", "A lamp stands in front of a wooden crate."),
        ("The mayor is received by an ambassador.", "An ambassador is received by the mayor."),
        ("A nun stands beside two grey donkeys.", "Two nuns stand beside a grey donkey."),
        ("A room with two sofas and a fireplace.", "A room with a sofa and two fireplaces."),
        ("A welder in red carries a blue bag.", "A welder in blue carries a red bag."),
        ("Silver earrings on a white background.", "White earrings on a silver background."),
        ("A van is stuck behind a lorry.", "A lorry is stuck behind a van."),
        ("One bottle and three glasses on a table.", "Three bottles and one glass on a table."),
        ("Anna Lee-Smith hands the ball to Carla Neita.", "Carla Neita hands the ball to Anna Lee-Smith."),
        ("A man in white shorts catches a green Frisbee.", "A man in green shorts catches a white Frisbee."),
        ("A man paddles a two person canoe.", ""),
        ("A nun throws a red ball across a black field.", ""),
        ("A lamp stands in front of a window.", ""),
        ("A white plate beside a glass of wine.", ""),
        ("A small cat walks under a big dog.", ""),
        ("A horse stands next to a man.", ""),
        ("A man holds a game controller.", ""),
        ("A woman in a red coat leads a horse.", ""),
        ("A girl is playing tennis on a brown dirt court.", ""),
    ],
)
def test_swaps_that_rules_vouch_for(caption: str, swap: str, previewed: Callable[..., Made], parser: str) -> None:
    swaps = made_of(previewed, parser, "rules:swap", caption)
    assert swap in swaps if swap else not swaps


def test_a_charge_stays_with_its_verb(previewed: Callable[..., Made], parser: str) -> None:
    """Small parsers attach `of lying` to the chairman, who was swapped together with it."""
    foils = made_of(previewed, parser, "rules:swap", "A woman accuses the chairman of lying.")
    assert "The chairman accuses a woman of lying." in foils
    assert not [f for f in foils if "chairman of lying" in f]
