"""Word lists: real English for the frequent ranks.

Senses (what a noun is, and what a slot takes): p person, a animal, f food, t thing, l place,
g group, i idea, e event. Lists are in order of frequency: small lexicons take the front.
"""

from __future__ import annotations

TOPICS = ("home", "city", "school", "work", "law", "nature", "sport", "art", "health", "sea")

# topic → sense → nouns; * marks a mass noun (no plural, no "a").
NOUNS: dict[str, dict[str, str]] = {
    "home": {
        "p": "person mother child father friend sister brother baby neighbour guest aunt uncle cousin daughter son",
        "a": "animal dog cat bird mouse kitten parrot",
        "f": "food* bread* drink cake soup egg apple milk* meal cheese* tea* rice* meat* sugar* pie biscuit butter*",
        "t": "thing door table window chair bed letter key box cup lamp clock plate knife blanket mirror toy basket",
        "l": "house kitchen garden room cellar attic",
        "i": "secret dream help* love* hope* habit fear* memory",
        "g": "family",
        "e": "party visit walk dinner call wedding birthday rest",
    },
    "city": {
        "p": "man woman driver stranger visitor tourist guide passenger cook",
        "f": "coffee* sandwich",
        "t": "car bus train ticket map bag bicycle light taxi suitcase coin wallet",
        "l": "place city street station market hotel road park bridge village square museum airport tower",
        "g": "crowd",
        "i": "address way noise* rumour",
        "e": "trip return drive journey parade",
    },
    "school": {
        "p": "teacher student girl boy pupil professor",
        "t": "book paper computer pen page desk notebook",
        "l": "school library university classroom college",
        "g": "class group",
        "i": "idea question answer story problem lesson word language fact mistake theory subject essay",
        "e": "talk test exam study lecture",
    },
    "work": {
        "p": "worker manager boss engineer customer clerk expert",
        "t": "report machine phone money* product tool contract",
        "l": "office shop factory bank",
        "g": "company team firm union",
        "i": "plan work* change offer need order job price project deal support*",
        "e": "meeting strike sale",
    },
    "law": {
        "p": "judge king soldier officer lawyer minister queen president thief witness citizen spy",
        "t": "gun document weapon sword flag",
        "l": "court prison palace castle",
        "g": "government army council",
        "i": "law promise claim rule truth* crime decision power*",
        "e": "fight vote attack war trial election",
    },
    "nature": {
        "p": "farmer hunter",
        "a": "horse cow sheep fox wolf bear rabbit goose hen snake",
        "f": "water* fruit potato corn* honey*",
        "t": "plant tree flower stone leaf grass* rock branch tractor",
        "l": "forest river field farm hill mountain lake valley",
        "e": "storm harvest fire winter",
    },
    "sport": {
        "p": "player coach runner captain champion",
        "t": "watch ball prize medal bat",
        "l": "stadium gym track",
        "g": "club squad",
        "i": "score record goal skill",
        "e": "game race run match tournament",
    },
    "art": {
        "p": "singer writer painter actor poet dancer",
        "t": "song picture film guitar piano novel poem statue drum",
        "l": "theatre gallery studio",
        "g": "band choir",
        "i": "music* style tune drama",
        "e": "show play dance concert",
    },
    "health": {
        "p": "doctor nurse patient dentist",
        "t": "pill medicine* bandage needle",
        "l": "hospital clinic",
        "i": "pain cure illness disease risk",
        "e": "accident operation",
    },
    "sea": {
        "p": "sailor fisherman pirate",
        "a": "fish whale shark seal crab",
        "t": "boat ship net rope sail anchor",
        "l": "island beach harbour coast",
        "g": "crew",
        "e": "voyage",
    },
}

# verb, topic (- any), then frames separated by ";": kind, subject senses, [object senses], prep:senses …
# Kinds: in transitive none, tr object, di recipient + object, cc that-clause, xc to-infinitive, aj adjective.
VERBS = """
say - cc pg
see - tr pa patle; cc p
go - in pa to:l from:l through:l
want - xc pag; tr pa ftei
give - di pg ft
find - tr pag tpafil; cc pg
think - cc p; in p about:ilep
take - tr p t from:l to:l
make home tr pg fti
know - tr p pil; cc p
seem - aj patlei; xc pag
walk home in pa to:l through:l from:l
like - tr pa ftpale; xc p
help - tr pg pag; xc pg
eat home tr pa f
work work in pg for:g in:l
buy city tr pg ft from:p; di p ft
love home tr p paftel; xc p
read school tr p t; in p about:ile
become - aj patle
tell - di p i
talk school in p about:ilep to:p
try - xc pa
live home in pa in:l near:l
run sport in pa to:l through:l; tr p g
plan work tr pg ei; xc pg
sleep home in pa on:t in:l
write school tr p t; di p t
ask school tr p p
play sport tr pg e; in pa with:tp
look - aj patl; in pa at:tpa
meet home tr pg pg
come - in pa to:l from:l
show art di p t; cc p
hear home tr pa eia; cc p
visit city tr p plg
believe - cc pg; tr p pi
open home tr p tl
follow - tr pa pae
need - tr pag ftpi; xc pg
feel health aj pa; tr p i
call city tr p pa; in p from:l
hope - cc p; xc pg
arrive city in pa at:l from:l
watch art tr pa epa
study school tr p i; in p at:l
sell work tr pg ft to:p; di pg ft
leave - tr p lge; in pag for:l
lose sport tr pg tei
win sport tr pg te
answer school tr p ip
start - tr pg ei; xc pag; in e
teach school di p i; tr p p
drink home tr pa f
send work di pg t; tr pg t to:p
build work tr pg tl
cook home tr p f; in p for:p
hate - tr p pei; xc p
report work cc pg; tr pg e
fight law in pag with:pa; tr pg pg
offer work di pg ft; xc pg
attack law tr pag palg
sing art tr p t; in pa
stay home in pa at:l with:p in:l
change - tr pg i; in pi
kill law tr pa pa
promise law xc pg; cc pg
swim sea in pa in:l to:l
laugh home in p at:pi
remember - tr p pile; cc p
carry - tr pa tf to:l
break home tr pa t; in t
order work tr p f; tr p t from:g
travel city in p to:l through:l with:p
claim law cc pg
vote law in pg for:p
judge law tr p pie
catch sea tr pa at
forget home tr p ipe; xc p
paint art tr p tpl
hunt nature tr pa a
lead law tr p gp
dance art in p with:p
test health tr pg ti
return city in pag to:l from:l; tr p t
drive city tr p t to:l; in p to:l
throw sport tr p t
support law tr pg pgi
die health in pa in:l
admire - tr p p
cross city tr pa l
clean home tr p tl
explain school tr p i to:p; cc pg
guide city tr p pg through:l
agree work xc pg; cc pg
wait city in pa for:pe
close home tr p tl
cure health tr p pi
record art tr p t
hide home tr pa tf in:l; in pa in:l
invite home tr pg p to:el
decide law xc pg; cc pg
fall - in pat on:t; in pt into:l
cry home in pa about:i
use - tr pg t
push - tr pa tpa
sail sea in p to:l from:l; tr p t
ignore - tr pg pil
notice - tr pa tpa; cc p
race sport in pa to:l
accept work tr pg it
refuse work xc pg; tr pg it
prepare home tr p fe
bring home tr p ft to:l; di p tf
steal law tr p t from:pl
dream home in p about:pile; cc p
enter city tr pa l
repair work tr p t
shout sport in p at:pa; cc p
collect art tr p t
discover nature tr pg lit
score sport in pg
protect law tr pag pal
describe school tr p pile to:p
praise art tr pg pgi
borrow school tr p t from:p
serve city tr p fp
destroy law tr pg tl
wash home tr p tf
plant nature tr p t
treat health tr p p
cut home tr p tf with:t
smile home in p at:p
rest health in pa in:l on:t
blame law tr pg pg
fear law tr pa pai; cc pg
joke home in p about:pi
photograph art tr p pal
park city tr p t
phone work tr p p
"""

# adjective, senses it modifies, antonym (also an adjective of the list) or -
ADJECTIVES = """
good patflgie bad
new tlgie old
old palt young
big atlf small
small atlf big
young pa old
happy pa sad
bad patflgie good
long tei short
sad paie happy
hot flt cold
cold fl hot
rich pg poor
short te long
clean tl dirty
poor pg rich
strong pagt weak
full tl empty
empty tl full
dirty tla clean
famous plgt unknown
tired pa -
weak pagi strong
quiet pal loud
loud pae quiet
cheap tfl expensive
expensive tfl cheap
important pie -
brave pa -
beautiful ptale ugly
strange ptalie ordinary
hungry pa -
angry pag calm
light tf heavy
heavy t light
clever pa stupid
safe pl dangerous
dangerous pale safe
dark lt bright
calm pa angry
fresh f -
kind p cruel
easy ie difficult
difficult ie easy
wooden t -
local pg foreign
foreign pgl local
ill pa healthy
healthy paf ill
early e late
late e early
lonely pa -
red t -
green tl -
honest p -
lazy pa -
wild a tame
sweet f bitter
busy pl -
ugly ptal beautiful
simple tie -
yellow t -
royal plg -
modest p -
curious pa -
smooth t rough
rough tl smooth
thin pat thick
thick t thin
soft tf -
dry tfl wet
wet tpal dry
common tia rare
rare tia common
huge tl tiny
tiny tla huge
serious pie -
funny pie -
patient p -
fair ipe -
rapid e -
shy pa -
polite p rude
rude p polite
secret tie -
proud pg -
modern tlgi ancient
ancient tli modern
white ta -
black ta -
gentle pa -
careful pg -
stupid pai clever
friendly pag -
narrow l wide
wide l narrow
bitter f sweet
nervous pa -
useful ti useless
useless ti useful
tame a wild
cruel pi kind
tall pt -
public le private
private le public
blue t -
unknown pltg famous
ordinary ptli strange
bright tl dark
"""

MANNER = """
slowly quickly
quickly slowly
quietly loudly
well badly
happily sadly
loudly quietly
carefully carelessly
badly well
easily -
suddenly gradually
sadly happily
hard -
fast -
secretly openly
calmly angrily
politely rudely
bravely -
angrily calmly
openly secretly
rudely politely
carelessly carefully
gradually suddenly
proudly -
eagerly reluctantly
gently roughly
reluctantly eagerly
honestly -
nervously -
closely -
finally -
patiently -
seriously -
firmly -
kindly -
clearly -
gladly -
briefly -
warmly coldly
roughly gently
coldly warmly
"""

GIVEN = (
    "Anna John Mary Peter Emma David Sarah Tom Alice Paul Laura James Julia Mark Nina Jordan Helen Simon Clara Austin "
    "Rosa Henry Grace Victor Ella Martin Ruth Oscar Irene Felix Sydney Hugo Vera Leo Marta Ivan Chelsea Noah Olga Carl "
    "Diana Ralph Edith Bruno Lydia Adam Florence Kevin Judith Roger"
)
SURNAMES = (
    "Smith Brown Clark Miller Jackson Lee Walker Green Lincoln Cooper Ford Baker Houston Morgan Carter Wells Hughes "
    "Foster Barnes Kelly Grant Porter Marsh Reed Newton Lambert Washington Fisher Bennett Doyle Hunter Pearce Lowe "
    "Sutton Harper Blake Webb Mason Dunn Hale"
)
# A place of two words is joined by + (a compound) or = (a flat name).
PLACES = (
    "London Paris Boston New+York Berlin Oslo Chicago Jordan Madrid Vienna San=Diego Lincoln Texas Dublin Kenya "
    "Houston Lake=Erie Austin Rome Spain Poland Sydney Cairo Lima New+Zealand Geneva Brazil Mount=Hood Washington "
    "Prague Florence Norway San=Marino Chelsea Athens Peru Kyoto Milan Port+Said Canada Lake=Como Delhi Turin Chile "
    "Seoul Lisbon Malta Denver Ghana Newton Riga"
)
ORGS = "Acme Norco Ford Zentra Lumex Morgan Delphi Orbis Apex Santex Vortex Kappa Telco Polaris Ambra Helix Quanta Nexo"
ORG_HEADS = "Bank University Company Institute Club Group College Council Museum Union"
